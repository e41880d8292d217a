package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/core/config"
	"sluice/core/fleet"
	"sluice/core/spend"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show on one screen how things stand",
		Long: "Shows the mode, the last ticks, the money against its limits, each pool and why it is as it is, each queue, the VPS,\n" +
			"and what wants a person. It reads the database alone: no cloud and no queue is asked.\n" +
			"Exit code 1 where something wants a person now.",
		Example: "  sluice status\n  sluice status --json | jq .money\n  watch -n 5 sluice status",
		Args:    exactly(0),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.status(cmd.Context()) },
	}
}

// standing is how things stand.
type standing struct {
	At       time.Time       `json:"at"` // by the database's clock
	Name     string          `json:"name,omitempty"`
	Mode     fleet.Mode      `json:"mode,omitempty"`
	Currency string          `json:"currency,omitempty"`
	Override *fleet.Override `json:"override,omitempty"`
	// Evaluated is the last tick, Reconciled when reconcile was last due.
	Evaluated  *fleet.TickRecord  `json:"last_tick,omitempty"`
	Reconciled time.Time          `json:"reconciled,omitzero"`
	Money      *fleet.Spend       `json:"money,omitempty"`
	Pools      []poolStanding     `json:"pools"`
	Queues     []fleet.QueueState `json:"queues"`
	QueuesAt   time.Time          `json:"queues_at,omitzero"`
	VPS        []fleet.Worker     `json:"vps"`
	Alerts     int                `json:"alerts_waiting"`
	Wants      []string           `json:"wants_a_person"`
}

// poolStanding is a pool as the last tick decided it, with its machines as they are now.
type poolStanding struct {
	Pool      string                  `json:"pool"`
	Have      int                     `json:"have"`
	Want      int                     `json:"want"`
	Why       string                  `json:"why,omitempty"` // code of the reason
	Machines  map[fleet.Lifecycle]int `json:"machines"`
	AskedFor  int                     `json:"asked_for"` // machines that have no row yet
	UnderWay  int                     `json:"jobs_under_way"`
	hasFigure bool
}

func (a *app) status(ctx context.Context) error {
	db, err := a.past(ctx)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := stand(ctx, db)
	if err != nil {
		return err
	}
	if a.asJSON {
		err = a.writeJSON(s)
	} else {
		err = a.tellStanding(s)
	}
	if err == nil && len(s.Wants) > 0 {
		return exitError(exitFailed)
	}
	return err
}

// ticksLookedAt reach back past a reconcile or two.
const ticksLookedAt = 20

func stand(ctx context.Context, db fleet.Database) (standing, error) {
	m, err := db.Recall(ctx)
	if err != nil {
		return standing{}, err
	}
	ticks, err := db.Ticks(ctx, time.Time{}, ticksLookedAt)
	if err != nil {
		return standing{}, err
	}
	s := standing{
		At: m.Now, Override: m.Override, Reconciled: m.LastDue[fleet.Reconcile],
		Pools: []poolStanding{}, Queues: []fleet.QueueState{}, VPS: []fleet.Worker{}, Wants: []string{},
	}
	i := slices.IndexFunc(ticks, func(t fleet.TickRecord) bool { return t.Function == fleet.Evaluate })
	if i >= 0 {
		s.Evaluated = &ticks[i]
		if err := s.decided(ctx, db); err != nil {
			return standing{}, err
		}
	}
	alerts, err := db.Deliveries(ctx, m.Now) // those that wait
	if err != nil {
		return standing{}, err
	}
	s.Alerts = len(alerts)
	s.remembered(m)
	s.wants(m)
	return s, nil
}

// decided adds what the last tick saw and decided.
func (s *standing) decided(ctx context.Context, db fleet.Database) error {
	lines, err := db.Lines(ctx, fleet.LineFilter{Tick: s.Evaluated.ID})
	if err != nil {
		return err
	}
	for _, l := range lines {
		if l.Event != "tick" {
			continue
		}
		var facts struct {
			Mode  fleet.Mode              `json:"mode"`
			Pools map[string]poolStanding `json:"pools"`
		}
		if err := json.Unmarshal(l.Facts, &facts); err != nil {
			return fmt.Errorf("read line of tick %s: %w", l.Tick, err)
		}
		s.Mode = facts.Mode
		for name, p := range facts.Pools {
			p.Pool, p.hasFigure = name, true
			s.Pools = append(s.Pools, p)
		}
	}
	samples, err := db.Samples(ctx, s.Evaluated.At)
	if err == nil && len(samples) > 0 {
		last := samples[len(samples)-1]
		s.Queues, s.QueuesAt = append(s.Queues, last.Queues...), last.At
	}
	return err
}

// remembered adds what the rows say now: machines, the VPS, and the money by the config in force.
func (s *standing) remembered(m fleet.Memory) {
	for _, w := range m.Workers {
		if !w.Cloud() {
			s.VPS = append(s.VPS, w)
			continue
		}
		p := s.pool(w.Pool)
		p.Machines[w.Lifecycle()]++
		p.UnderWay += w.Jobs
	}
	for _, in := range m.Intents {
		if in.Kind == fleet.KindLaunch && in.State == fleet.IntentOpen {
			s.pool(in.Pool).AskedFor += max(0, in.Count-in.Bound)
		}
	}
	slices.SortFunc(s.Pools, func(a, b poolStanding) int { return strings.Compare(a.Pool, b.Pool) })
	if s.Evaluated != nil {
		s.Money = &s.Evaluated.Spend
	}
	p, err := config.Parse("the config in force", m.LastGood, config.Env{})
	if err != nil { // none yet, or one of another version: the last tick's figures stay
		return
	}
	s.Name, s.Mode, s.Currency = p.Config.Name, p.Config.Mode, p.Config.Currency
	if books, err := spend.Open(fleet.Snapshot{Config: p.Config, Memory: m}); err == nil {
		s.Money = &books.Spend
	}
	if s.Evaluated != nil && p.Config.Late(s.Evaluated.At, m.Now) {
		s.want("no tick has come to an end for %s: `sluice doctor` looks for the cause", ago(m.Now, s.Evaluated.At))
	}
}

func (s *standing) pool(name string) *poolStanding {
	i := slices.IndexFunc(s.Pools, func(p poolStanding) bool { return p.Pool == name })
	if i < 0 {
		s.Pools = append(s.Pools, poolStanding{Pool: name})
		i = len(s.Pools) - 1
	}
	if s.Pools[i].Machines == nil {
		s.Pools[i].Machines = map[fleet.Lifecycle]int{}
	}
	return &s.Pools[i]
}

func (s *standing) want(format string, args ...any) {
	s.Wants = append(s.Wants, fmt.Sprintf(format, args...))
}

// wants says what a person has to see to, and how.
func (s *standing) wants(m fleet.Memory) {
	switch {
	case s.Evaluated == nil && m.LastGood == nil:
		s.want("no tick has run here yet: `sluice plan --config FILE` shows what one would do, `sluice tick` does it")
	case s.Evaluated == nil:
		s.want("no tick is stored: `sluice doctor` looks for the cause")
	}
	if s.Override != nil {
		s.want("the cloud is off since %s: %s. `sluice resume-cloud --reason TEXT` lifts that", s.Override.At.UTC().Format(time.DateTime), s.Override.Why)
	}
	if s.Alerts > 0 {
		s.want("alerts not delivered yet: %d; `sluice alerts --waiting` tells why", s.Alerts)
	}
	for _, q := range s.Queues {
		if q.Unknown != "" {
			s.want("queue %s cannot be read: %s", q.Name, q.Unknown)
		}
	}
}

func (a *app) tellStanding(s standing) error {
	if err := a.say("%s", s.head()); err != nil {
		return err
	}
	for _, part := range []struct {
		head []string
		rows [][]string
	}{
		{[]string{"POOL", "HAVE", "WANT", "MACHINES", "JOBS", "WHY"}, s.poolRows()},
		{[]string{"QUEUE", "WAITING", "RUNNING", "OLDEST"}, s.queueRows()},
		{[]string{"VPS WORKER", "STATE", "JOBS", "HEARD"}, s.vpsRows()},
	} {
		if len(part.rows) == 0 {
			continue
		}
		if err := writeAll(a.out, "\n"); err != nil {
			return err
		}
		if err := a.table(part.head, part.rows); err != nil {
			return err
		}
	}
	if len(s.Wants) == 0 {
		return a.say("\nNothing wants a person.")
	}
	return a.say("\nWants a person:\n- %s", strings.Join(s.Wants, "\n- "))
}

// head is what is not a table.
func (s standing) head() string {
	lines := []string{fmt.Sprintf("%s, %s, at %s UTC", orWord(s.Name, "no config yet"), orWord(string(s.Mode), "nothing decided yet"), s.At.UTC().Format(time.DateTime))}
	if t := s.Evaluated; t != nil {
		lines = append(lines, fmt.Sprintf("Last tick %s ago: %s", ago(s.At, t.At), t.Message))
	}
	if !s.Reconciled.IsZero() {
		lines = append(lines, fmt.Sprintf("Reconciled %s ago", ago(s.At, s.Reconciled)))
	}
	if m := s.Money; m != nil {
		reserved := ""
		if m.Reserved > 0 {
			reserved = fmt.Sprintf(" and %s reserved", m.Reserved)
		}
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("Money: %s per hour%s of %s; %s today of %s %s",
			m.Rate, reserved, m.Hourly, m.Today, m.Daily, s.Currency)))
	}
	return strings.Join(lines, "\n")
}

func orWord(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}

func (s standing) poolRows() [][]string {
	rows := make([][]string, len(s.Pools))
	for i, p := range s.Pools {
		have, want := "?", "?" // a pool that the last tick did not know
		if p.hasFigure {
			have, want = fmt.Sprint(p.Have), fmt.Sprint(p.Want)
		}
		rows[i] = []string{p.Pool, have, want, p.machines(), fmt.Sprint(p.UnderWay), p.Why}
	}
	return rows
}

// machines counts them by where they are in their life.
func (p poolStanding) machines() string {
	var parts []string
	if p.AskedFor > 0 {
		parts = append(parts, fmt.Sprintf("%d asked for", p.AskedFor))
	}
	for _, l := range []fleet.Lifecycle{fleet.LifeProvisioning, fleet.LifeReady, fleet.LifeProcessing, fleet.LifeCooldown, fleet.LifeDraining, fleet.LifeSuspended} {
		if n := p.Machines[l]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, l))
		}
	}
	return orWord(strings.Join(parts, ", "), "none")
}

func (s standing) queueRows() [][]string {
	rows := make([][]string, len(s.Queues))
	for i, q := range s.Queues {
		rows[i] = []string{q.Name, fmt.Sprint(q.Depth), fmt.Sprint(q.Running), q.Oldest.Duration().String()}
		if q.NoAge {
			rows[i][3] = "not told"
		}
		if q.Unknown != "" {
			rows[i][1], rows[i][2], rows[i][3] = "unknown", "unknown", "unknown"
		}
	}
	return rows
}

func (s standing) vpsRows() [][]string {
	rows := make([][]string, len(s.VPS))
	for i, w := range s.VPS {
		rows[i] = []string{w.Machine, string(w.Lifecycle()), fmt.Sprintf("%d/%d", w.Jobs, w.Slots), ago(s.At, w.Heartbeat) + " ago"}
	}
	return rows
}
