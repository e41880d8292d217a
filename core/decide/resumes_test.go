package decide_test

import (
	"testing"
	"time"

	"sluice/core/decide"
	"sluice/core/fleet"
)

func TestAResumedMachineThatEndsUnseenCostsAsIfItRanSinceTheCall(t *testing.T) {
	t.Parallel()
	from := func(w *fleet.Worker) { w.CostFrom = ago(time.Hour) }
	p := decide.Decide(world(has("a", suspended(time.Hour), from), doing(fleet.KindResume, "a", 10*minute), inState("i-a", fleet.MachineGone)))
	running := fleet.Money(0)
	for _, s := range p.Spans {
		if s.Price == dime && s.From.Equal(ago(10*minute)) && s.To.Equal(noon) && s.Last {
			running = s.Price.For(s.To.Sub(s.From))
		}
	}
	if running != 16_667 { // a tenth per hour, for ten minutes, rounded up
		t.Errorf("its last ten minutes cost %s: %s", running, text(p.Spans))
	}
}

func TestAResumeIsNotRepeatedForAMachineOfAnotherSpec(t *testing.T) {
	t.Parallel()
	given := []change{waiting(5, minute), has("a", suspended(time.Hour), specced("old")), inState("i-a", fleet.MachineSuspended), doing(fleet.KindResume, "a", 3*minute)}
	p := decide.Decide(world(given...))
	for _, c := range p.Calls {
		if in := intentOf(p, c.Intent); in.Kind == fleet.KindResume {
			t.Errorf("it is asked to run again: %s", text(in))
		}
	}
}

func TestAnOrphanWhoseEndWasAskedForIsNotAdopted(t *testing.T) {
	t.Parallel()
	ending := func(s *fleet.Snapshot) {
		s.Memory.Intents = append(s.Memory.Intents, fleet.Intent{
			ID: "end", Kind: fleet.KindTerminate, State: fleet.IntentOpen, Count: 1, Created: ago(minute), Changed: ago(minute),
			Ref: fleet.Ref{Place: aws, Machine: "m-x"}, ClaimedUntil: noon.Add(minute),
		})
	}
	p := decide.Decide(world(listed("m-x"), ending, requested(fleet.RequestAdopt, "all")))
	if len(p.Adopted) != 0 {
		t.Errorf("it is adopted and then ends: %s", text(p.Adopted))
	}
}
