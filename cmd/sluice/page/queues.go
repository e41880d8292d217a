package page

import (
	"cmp"
	"slices"
	"time"

	"sluice/core/fleet"
)

const (
	window      = time.Hour
	silence     = 5 * time.Minute // without a reading breaks the line
	queuesShown = 12
)

// samples are the readings of queues of the last hour, oldest first.
type samples struct{ all []fleet.Sample }

// since is where the next reading of them begins.
func (s *samples) since(now time.Time) time.Time {
	begin := now.Add(-window)
	if n := len(s.all); n > 0 && s.all[n-1].At.After(begin) {
		return s.all[n-1].At
	}
	return begin
}

// add appends those that are new; the last one known is read again.
func (s *samples) add(more []fleet.Sample) {
	for _, m := range more {
		if n := len(s.all); n == 0 || m.At.After(s.all[n-1].At) {
			s.all = append(s.all, m)
		}
	}
}

// view is the last reading with the hour before it, and forgets what is older.
func (s *samples) view(now time.Time) queuesView {
	old, _ := slices.BinarySearchFunc(s.all, now.Add(-window), func(x fleet.Sample, t time.Time) int { return x.At.Compare(t) })
	s.all = slices.Delete(s.all, 0, min(old, max(0, len(s.all)-1))) // the last reading stays, however old
	v := queuesView{Shown: []queueView{}}
	if len(s.all) == 0 {
		return v
	}
	last := s.all[len(s.all)-1]
	v.At = known(last.At)
	states := slices.Clone(last.Queues)
	if len(states) > queuesShown {
		slices.SortStableFunc(states, func(a, b fleet.QueueState) int { return cmp.Compare(b.Depth, a.Depth) })
		for _, q := range states[queuesShown:] {
			v.More++
			v.Wait += q.Depth
		}
		states = states[:queuesShown]
	}
	for _, q := range states {
		v.Shown = append(v.Shown, queueView{
			Name: q.Name, Unknown: q.Unknown, Depth: q.Depth, Running: q.Running, Oldest: q.Oldest, NoAge: q.NoAge,
			Series: s.series(q.Name),
		})
	}
	return v
}

// step is how close readings become one point: the hour has about a hundred, and so has a run of two minutes.
func (s *samples) step() time.Duration {
	switch span := s.all[len(s.all)-1].At.Sub(s.all[0].At); {
	case span <= 2*time.Minute:
		return time.Second
	case span <= 10*time.Minute:
		return 5 * time.Second
	}
	return 30 * time.Second
}

// series is a queue's hour in points, each with the highest of the readings in it, so that no peak is lost.
func (s *samples) series(queue string) seriesView {
	v := seriesView{At: []int64{}, Depth: []*int{}, Age: []*int{}}
	step := s.step()
	var last time.Time
	for _, sample := range s.all {
		i := slices.IndexFunc(sample.Queues, func(q fleet.QueueState) bool { return q.Name == queue })
		if i < 0 {
			continue
		}
		if !last.IsZero() && sample.At.Sub(last) > silence {
			v.point(last.Add(step))
		}
		if last.IsZero() || !sample.At.Truncate(step).Equal(last.Truncate(step)) {
			v.point(sample.At)
		}
		last = sample.At
		v.raise(sample.Queues[i])
	}
	return v
}

func (v *seriesView) point(at time.Time) {
	v.At, v.Depth, v.Age = append(v.At, at.Unix()), append(v.Depth, nil), append(v.Age, nil)
}

// raise has the last point show a reading if it is the highest there; unknown is not zero.
func (v *seriesView) raise(q fleet.QueueState) {
	if q.Unknown != "" {
		return
	}
	n := len(v.At) - 1
	raise(&v.Depth[n], q.Depth)
	if !q.NoAge {
		raise(&v.Age[n], int(q.Oldest))
	}
}

func raise(highest **int, value int) {
	if *highest == nil || **highest < value {
		*highest = &value
	}
}
