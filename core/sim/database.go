package sim

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"sluice/core/fleet"
)

// database is the tables. Values are replaced, never changed in place, so that a copy of the maps is a backup.
type database struct {
	deployment string
	lastNow    time.Time
	ticks      []tickRow
	lines      []fleet.LineRecord
	samples    []fleet.Sample
	configAt   time.Time
	lastGood   []byte
	workers    map[string]workerRow
	machines   map[fleet.Ref]string // workers by machine; the zone is empty
	spans      []fleet.Span
	intents    map[string]intentRow
	sightings  []fleet.Sighting
	coolOffs   map[string]fleet.CoolOff
	quotes     map[string]fleet.Quote
	override   *fleet.Override
	requests   []fleet.Request
	bills      []fleet.Bill
	alerts     []alertRow
	channels   map[string]channelRow
	assigned   map[string]fleet.Assignment
	jobs       map[string]jobRow
	all        []string // ids of jobs, oldest first
	waiting    []string // the same without those that are over; they may stay in it for a while
	attempts   map[string]attemptRow
}

type workerRow struct {
	fleet.Worker
	Ended  time.Time
	EndWhy string
}

type intentRow struct {
	fleet.Intent
	answered map[int]time.Time // by ordinal of the attempt
}

type tickRow struct {
	fleet.TickRecord
	snapshot *fleet.Snapshot
	plan     fleet.Plan // empty where the snapshot was not kept
}

type alertRow struct {
	fleet.Alert
	handed     bool
	deliveries []deliveryRow // by channel
}

type deliveryRow struct {
	channel     string
	state       fleet.DeliveryState
	attempts    int
	tried, next time.Time
	answer      string
}

// channelRow is how a channel has behaved since it last answered.
type channelRow struct {
	failures int
	held     time.Time
}

type jobRow struct {
	ID         string
	Queue      string
	Status     string
	Priority   int
	Attempts   int
	Market     fleet.Market
	Created    time.Time
	Due        time.Time
	ClaimedBy  string
	Attempt    string
	Visible    time.Time
	Excluded   string
	Checkpoint json.RawMessage
}

type attemptRow struct {
	Job, Worker string
	Number      int
	Status      string
}

// Statuses of jobs.
const (
	jobQueued     = "queued"
	jobProcessing = "processing"
	jobCompleted  = "completed"
	jobDead       = "dead"
)

func newDatabase(deployment string) *database {
	return &database{
		deployment: deployment,
		workers:    map[string]workerRow{},
		machines:   map[fleet.Ref]string{},
		intents:    map[string]intentRow{},
		coolOffs:   map[string]fleet.CoolOff{},
		quotes:     map[string]fleet.Quote{},
		assigned:   map[string]fleet.Assignment{},
		jobs:       map[string]jobRow{},
		attempts:   map[string]attemptRow{},
		channels:   map[string]channelRow{},
	}
}

// clone is a copy that lives on beside d.
func (d *database) clone() *database {
	c := d.fork()
	c.ticks, c.lines, c.samples = slices.Clip(d.ticks), slices.Clip(d.lines), slices.Clip(d.samples)
	return c
}

// fork is a copy that takes d's place, or is thrown away: what is only ever added to is shared.
func (d *database) fork() *database {
	c := *d
	c.workers, c.machines, c.intents = maps.Clone(d.workers), maps.Clone(d.machines), maps.Clone(d.intents)
	c.spans, c.sightings, c.bills = slices.Clone(d.spans), slices.Clone(d.sightings), slices.Clone(d.bills)
	c.coolOffs, c.quotes, c.assigned = maps.Clone(d.coolOffs), maps.Clone(d.quotes), maps.Clone(d.assigned)
	c.requests, c.alerts = slices.Clone(d.requests), slices.Clone(d.alerts)
	c.all, c.waiting = slices.Clone(d.all), slices.Clone(d.waiting)
	c.jobs, c.attempts = maps.Clone(d.jobs), maps.Clone(d.attempts)
	return &c
}

func ended(s fleet.Status) bool { return s == fleet.Terminated || s == fleet.Failed }

func machineKey(p fleet.Place, machine string) fleet.Ref {
	return fleet.Ref{Place: p, Machine: machine}
}

// byMachine finds the row of a machine, ended or not.
func (d *database) byMachine(p fleet.Place, machine string) (workerRow, bool) {
	row, ok := d.workers[d.machines[machineKey(p, machine)]]
	return row, ok
}

func (d *database) put(row workerRow) {
	d.workers[row.ID] = row
	d.machines[machineKey(row.Place, row.Machine)] = row.ID
}

// bound is how many machines of a launch ever had a row.
func (d *database) bound(intent string) int {
	n := 0
	for _, w := range d.workers {
		if w.Intent == intent {
			n++
		}
	}
	return n
}

// closeWorker ends a row and gives its jobs back.
func (d *database) closeWorker(row workerRow, at time.Time, why string) {
	row.Ended, row.EndWhy = at, why
	d.put(row)
	d.giveBack(row.ID, func(jobRow) bool { return true })
}

// giveBack returns jobs of a worker to their queue, attempt counted, or to the dead.
func (d *database) giveBack(worker string, which func(jobRow) bool) int {
	n := 0
	for _, id := range d.inHand(worker) {
		if j := d.jobs[id]; which(j) {
			d.endAttempt(j, "lost")
			n++
		}
	}
	d.recount(worker)
	return n
}

// inHand are the jobs of a worker, oldest first.
func (d *database) inHand(worker string) []string {
	var out []string
	for _, id := range d.waiting {
		if j := d.jobs[id]; j.Status == jobProcessing && j.ClaimedBy == worker {
			out = append(out, id)
		}
	}
	return out
}

// endAttempt ends what was not a success.
func (d *database) endAttempt(j jobRow, status string) jobRow {
	a := d.attempts[j.Attempt]
	a.Status = status
	d.attempts[j.Attempt] = a
	rules := d.rules(j.ClaimedBy)
	switch {
	case status == "released":
		j.Attempts, j.Status = j.Attempts-1, jobQueued
	case j.Attempts >= rules.MaxAttempts:
		j.Status = jobDead
	default:
		j.Status = jobQueued
		if rules.RetryElsewhere {
			j.Excluded = j.ClaimedBy
		}
	}
	j.ClaimedBy, j.Attempt, j.Visible = "", "", time.Time{}
	d.jobs[j.ID] = j
	return j
}

// rules are those of a worker's pool, with the defaults of a pool that has none.
func (d *database) rules(worker string) fleet.Assignment {
	a, ok := d.assigned[d.workers[worker].Pool]
	if !ok {
		a = fleet.Assignment{MaxAttempts: 3, Visibility: 300, DrainTimeout: 300, RetryElsewhere: true}
	}
	return a
}

func (d *database) recount(worker string) {
	if row, ok := d.workers[worker]; ok {
		row.Jobs = len(d.inHand(worker))
		d.workers[worker] = row
	}
}

func sortedKeys[V any](m map[string]V) []string {
	return slices.SortedFunc(maps.Keys(m), cmp.Compare[string])
}
