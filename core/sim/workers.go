package sim

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"sluice/core/fleet"
)

// Registration is what a machine says of itself when it starts.
type Registration struct {
	Place                    fleet.Place
	Zone, Machine            string
	Pool, Intent, Spec, Type string
	Market                   fleet.Market
	Expires                  time.Time
}

// Beat is what a worker learns from its registration and from every heartbeat.
type Beat struct {
	Worker     string
	Status     fleet.Status
	Drain      bool
	Expires    time.Time
	Assignment *fleet.Assignment // nil where there is none
	Wait       bool              // nothing was written, try again later
}

// Claimed is a job in hand.
type Claimed struct {
	Attempt, Job, Queue string
	Number              int
	Visible             time.Time
	Checkpoint          json.RawMessage
}

// Workers is the worker's side of the database. No fault comes between, but an agent can be silenced.
func (w *World) Workers() *Workers { return &Workers{w} }

// Workers does what the SQL functions for workers do.
type Workers struct{ w *World }

// Register makes a machine's row, or brings it up to date.
func (s *Workers) Register(r Registration) Beat {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.register(r)
}

func (w *World) register(r Registration) Beat {
	d, now := w.db, w.clock()
	row, known := d.byMachine(r.Place, r.Machine)
	_, assigned := d.assigned[r.Pool]
	if !known && (!assigned || d.inFlight(r.Intent) || d.doomed(r)) {
		return Beat{Wait: true}
	}
	if !known {
		row = d.newRow(r, now)
		if in, ok := d.intents[r.Intent]; ok && d.bound(in.ID) >= in.Count { // more machines than the launch asked for
			row.Status, row.DrainAt, row.DrainWhy = fleet.Draining, now, fleet.DrainSurplus{}.Code()
		}
	}
	if ended(row.Status) {
		row.Status, row.BootAt, row.CostFrom = fleet.Provisioning, now, latest(row.Ended, row.CostFrom)
		row.Registered, row.DrainAt, row.DrainAck, row.DrainWhy = time.Time{}, time.Time{}, time.Time{}, ""
		row.Ended, row.EndWhy = time.Time{}, ""
	}
	row.AbsentSince, row.Heartbeat = time.Time{}, now
	if row.Registered.IsZero() && row.Status != fleet.Suspended {
		row.Registered = now
	}
	if row.Status == fleet.Provisioning {
		row.Status, row.IdleSince, row.Changed = fleet.Ready, now, now
	}
	if row.IdleSince.IsZero() {
		row.IdleSince = now
	}
	row.Queues, row.Slots = d.queuesOf(row.Pool), d.slotsOf(row.Pool)
	d.put(row)
	return d.beat(row)
}

// inFlight says that a repeated call, which its provider cannot recognise, may yet make another machine.
func (d *database) inFlight(intent string) bool {
	in, ok := d.intents[intent]
	return ok && in.State == fleet.IntentOpen && !in.Idempotent &&
		slices.ContainsFunc(in.Attempts, func(a fleet.Attempt) bool { return a.Calls > 1 && a.Unanswered() })
}

// doomed says that the machine's end was asked for while nobody knew it: there is no way back from that.
func (d *database) doomed(r Registration) bool {
	for _, in := range d.intents {
		if in.State == fleet.IntentOpen && in.Kind == fleet.KindTerminate && in.Ref.Place == r.Place && in.Ref.Machine == r.Machine {
			return true
		}
	}
	return false
}

// newRow is the row of a machine of which nobody has told yet.
func (d *database) newRow(r Registration, now time.Time) workerRow {
	m := fleet.Machine{ID: r.Machine, Zone: r.Zone, Type: r.Type, Market: r.Market, Tags: fleet.Tags{Spec: r.Spec, Expires: r.Expires}}
	in, launched := d.intents[r.Intent]
	if launched && len(in.Attempts) > 0 && in.Kind == fleet.KindLaunch {
		return d.answers(in, workerRow{Worker: launchedWorker(d.deployment, in.Intent, answering(in.Intent, r.Type, r.Market), r.Place, m, now)}, now)
	}
	offer := fleet.Offer{Place: r.Place, Zone: r.Zone, Type: r.Type, Market: r.Market}
	price := d.quotes[offer.Key()].Price
	offer.Zone = ""
	return d.answers(in, workerRow{Worker: fleet.Worker{
		ID: fleet.ID(d.deployment, r.Place.String(), r.Machine), Pool: r.Pool, Place: r.Place, Zone: r.Zone, Machine: r.Machine,
		Type: r.Type, Market: r.Market, Intent: r.Intent, Spec: r.Spec, Price: max(price, d.quotes[offer.Key()].Price),
		Status: fleet.Provisioning, CostFrom: now, BootAt: now, Expires: r.Expires,
	}}, now)
}

// answers drains a machine of a launch that has as many as it asked for.
func (d *database) answers(in intentRow, row workerRow, now time.Time) workerRow {
	if in.Kind == fleet.KindLaunch && d.bound(in.ID) >= in.Count {
		row.Status, row.DrainAt, row.DrainWhy = fleet.Draining, now, fleet.DrainSurplus{}.Code()
	}
	return row
}

func (d *database) queuesOf(pool string) []string {
	var out []string
	for _, q := range d.assigned[pool].Queues {
		out = append(out, q.Name)
	}
	return out
}

func (d *database) slotsOf(pool string) int {
	n := 0
	for _, q := range d.assigned[pool].Queues {
		n += max(1, q.Run.Slots)
	}
	return max(1, n)
}

func (d *database) beat(row workerRow) Beat {
	b := Beat{Worker: row.ID, Status: row.Status, Expires: row.Expires, Drain: row.Status == fleet.Draining || row.Status == fleet.Suspended}
	if a, ok := d.assigned[row.Pool]; ok {
		b.Assignment = &a
	}
	return b
}

// Heartbeat says that a worker lives; known is false where there is no such worker, which must register again.
func (s *Workers) Heartbeat(worker string) (b Beat, known bool) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.heartbeat(worker)
}

func (w *World) heartbeat(worker string) (b Beat, known bool) {
	row, ok := w.db.workers[worker]
	if !ok || ended(row.Status) {
		return Beat{}, false
	}
	now := w.clock()
	row.Heartbeat = now
	if row.Status == fleet.Provisioning {
		row.Status, row.IdleSince, row.Changed = fleet.Ready, now, now
	}
	if row.Registered.IsZero() && row.Status != fleet.Suspended {
		row.Registered = now
	}
	w.db.put(row)
	return w.db.beat(row), true
}

// Claim takes up to n due jobs, the most urgent first; ten minutes of waiting are worth one step of priority.
func (s *Workers) Claim(worker string, queues []string, n int) []Claimed {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.claim(worker, queues, n)
}

func (w *World) claim(worker string, queues []string, n int) []Claimed {
	d, now := w.db, w.clock()
	row, ok := d.workers[worker]
	rules := d.rules(worker)
	late := ok && !row.Expires.IsZero() && !now.Before(row.Expires.Add(-rules.DrainTimeout.Duration()))
	if !ok || row.Status != fleet.Ready || late {
		return nil
	}
	var free []jobRow
	for _, id := range d.waiting {
		if j := d.jobs[id]; slices.Contains(queues, j.Queue) && d.mayRun(row, j, now) {
			free = append(free, j)
		}
	}
	slices.SortStableFunc(free, func(a, b jobRow) int { return cmp.Compare(a.rank(now), b.rank(now)) })
	var out []Claimed
	for _, j := range free[:min(n, len(free))] {
		j.Status, j.ClaimedBy, j.Attempt = jobProcessing, worker, w.id("attempt")
		j.Attempts++
		j.Visible = now.Add(rules.Visibility.Duration())
		d.jobs[j.ID] = j
		d.attempts[j.Attempt] = attemptRow{Job: j.ID, Worker: worker, Number: j.Attempts, Status: "running"}
		out = append(out, Claimed{j.Attempt, j.ID, j.Queue, j.Attempts, j.Visible, j.Checkpoint})
	}
	d.recount(worker)
	return out
}

func (j jobRow) available() time.Time { return latest(j.Created, j.Due) }

// rank is lower for what comes first.
func (j jobRow) rank(now time.Time) float64 {
	return float64(j.Priority) - now.Sub(j.available()).Minutes()/10
}

func (j jobRow) claimable(now time.Time) bool {
	return j.Status == jobQueued && !now.Before(j.available())
}

func (d *database) mayRun(row workerRow, j jobRow, now time.Time) bool {
	if !j.claimable(now) || j.Market == fleet.OnDemand && row.Market == fleet.Spot {
		return false
	}
	if j.Market == fleet.Spot && row.Market != fleet.Spot && d.another(row.ID, j.Queue, now, fleet.Spot) {
		return false
	}
	return j.Excluded != row.ID || !d.another(row.ID, j.Queue, now, "")
}

// another says that a live worker but this one serves a queue, on a market if one is named.
func (d *database) another(worker, queue string, now time.Time, market fleet.Market) bool {
	for id, o := range d.workers {
		if id != worker && o.Status == fleet.Ready && now.Sub(o.Heartbeat) < 2*time.Minute && slices.Contains(o.Queues, queue) &&
			(market == "" || o.Market == market) {
			return true
		}
	}
	return false
}

// current finds the job of an attempt that is still in hand.
func (d *database) current(attempt string) (jobRow, bool) {
	j, ok := d.jobs[d.attempts[attempt].Job]
	return j, ok && j.Status == jobProcessing && j.Attempt == attempt
}

// Extend keeps a job in hand for another visibility timeout.
func (s *Workers) Extend(attempt string) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.extend(attempt)
}

func (w *World) extend(attempt string) bool {
	j, ok := w.db.current(attempt)
	if ok {
		j.Visible = w.clock().Add(w.db.rules(j.ClaimedBy).Visibility.Duration())
		w.db.jobs[j.ID] = j
	}
	return ok
}

// Checkpoint keeps what the next attempt can go on from.
func (s *Workers) Checkpoint(attempt string, data json.RawMessage) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	j, ok := s.w.db.current(attempt)
	if ok {
		j.Checkpoint = data
		s.w.db.jobs[j.ID] = j
	}
	return ok
}

// Complete ends a job well.
func (s *Workers) Complete(attempt string) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.complete(attempt)
}

func (w *World) complete(attempt string) bool {
	j, ok := w.db.current(attempt)
	if !ok {
		return false
	}
	a := w.db.attempts[attempt]
	a.Status = "succeeded"
	w.db.attempts[attempt] = a
	worker := j.ClaimedBy
	j.Status, j.ClaimedBy, j.Attempt, j.Visible = jobCompleted, "", "", time.Time{}
	w.db.jobs[j.ID] = j
	w.truth.completed[j.ID]++
	w.db.recount(worker)
	w.db.idle(worker, w.clock())
	return true
}

// idle notes when a worker's last job ended.
func (d *database) idle(worker string, now time.Time) {
	if row, ok := d.workers[worker]; ok && row.Jobs == 0 {
		row.IdleSince = now
		d.workers[worker] = row
	}
}

// Fail ends an attempt badly: queued again, or dead; empty where it is no longer current.
func (s *Workers) Fail(attempt string) string {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.finishAttempt(attempt, "failed")
}

// Release gives a job back, the attempt not counted.
func (s *Workers) Release(attempt string) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.finishAttempt(attempt, "released") != ""
}

func (w *World) finishAttempt(attempt, status string) string {
	j, ok := w.db.current(attempt)
	if !ok {
		return ""
	}
	worker := j.ClaimedBy
	j = w.db.endAttempt(j, status)
	w.db.recount(worker)
	w.db.idle(worker, w.clock())
	return j.Status
}

// Drained acknowledges that a draining worker claims nothing more.
func (s *Workers) Drained(worker string) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.drained(worker)
}

func (w *World) drained(worker string) bool {
	row, ok := w.db.workers[worker]
	if !ok || row.Status != fleet.Draining {
		return false
	}
	if row.DrainAck.IsZero() {
		row.DrainAck = w.clock()
		w.db.put(row)
	}
	return true
}

// Leave is a clean stop.
func (s *Workers) Leave(worker string) bool {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.leave(worker)
}

func (w *World) leave(worker string) bool {
	row, ok := w.db.workers[worker]
	if !ok || ended(row.Status) || row.Status == fleet.Suspended {
		return false
	}
	now := w.clock()
	if !row.Cloud() {
		row.Status, row.Changed = fleet.Terminated, now
		w.db.closeWorker(row, now, "left")
		return true
	}
	w.db.giveBack(worker, func(jobRow) bool { return true })
	row = w.db.workers[worker]
	if row.Status != fleet.Draining {
		row.Status, row.DrainAt, row.DrainWhy = fleet.Draining, now, "left"
	}
	row.Changed = now
	if row.DrainAck.IsZero() {
		row.DrainAck = now
	}
	w.db.put(row)
	return true
}

// Sweep gives back jobs whose visibility ran out, and keeps the Redis lists in step with the table.
func (s *Workers) Sweep() int {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	d, now := s.w.db, s.w.clock()
	d.waiting = slices.DeleteFunc(slices.Clone(d.waiting), func(id string) bool {
		return d.jobs[id].Status == jobCompleted || d.jobs[id].Status == jobDead
	})
	n := 0
	for _, worker := range d.holders() {
		n += d.giveBack(worker, func(j jobRow) bool { return j.Visible.Before(now) })
	}
	s.w.relist(now)
	return n
}

// holders are all that have jobs in hand, also those without a row.
func (d *database) holders() []string {
	var out []string
	for _, id := range d.waiting {
		if j := d.jobs[id]; j.Status == jobProcessing && !slices.Contains(out, j.ClaimedBy) {
			out = append(out, j.ClaimedBy)
		}
	}
	return out
}

// relist puts the ids of due jobs, and no others, into the lists.
func (w *World) relist(now time.Time) {
	w.lists = map[string][]string{}
	for _, id := range w.db.waiting {
		if j := w.db.jobs[id]; j.claimable(now) {
			w.lists[listKey(j.Queue)] = append(w.lists[listKey(j.Queue)], id)
		}
	}
}

func listKey(queue string) string { return "queue:" + queue }

// Job is work for a queue.
type Job struct {
	Queue    string
	Priority int           // 0 is the default, 5
	After    time.Duration // not due before then
	Market   fleet.Market
	Work     time.Duration // how long an attempt takes
	Fails    int           // attempts that fail before one succeeds
	Crashes  int           // attempts that take their worker with them
}

// Enqueue puts a job into the table and its id into the queue's list.
func (w *World) Enqueue(j Job) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := w.clock()
	row := jobRow{ID: w.id("job"), Queue: j.Queue, Status: jobQueued, Priority: cmp.Or(j.Priority, 5), Market: j.Market, Created: now}
	if j.After > 0 {
		row.Due = now.Add(j.After)
	}
	w.db.jobs[row.ID] = row
	w.db.all = append(w.db.all, row.ID)
	w.db.waiting = append(w.db.waiting, row.ID)
	w.lists[listKey(j.Queue)] = append(w.lists[listKey(j.Queue)], row.ID)
	w.truth.enqueued[row.ID] = j
	return row.ID
}

// JobState is a job's row.
type JobState struct {
	ID, Queue, Status string
	Attempts          int
	ClaimedBy         string
}

// Jobs lists all rows, oldest first.
func (w *World) Jobs() []JobState {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []JobState
	for _, id := range w.db.all {
		j := w.db.jobs[id]
		out = append(out, JobState{j.ID, j.Queue, j.Status, j.Attempts, j.ClaimedBy})
	}
	return out
}
