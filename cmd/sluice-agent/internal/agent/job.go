package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"sluice/cmd/sluice-agent/internal/proc"
	"sluice/core/fleet"
)

// Why a job's command is ended.
var (
	errNotOurs   = errors.New("the attempt is no longer ours")
	errGivenBack = errors.New("given back")
	errEnding    = errors.New("the agent ends now")
)

// job is one attempt in hand. It works in a goroutine of its own, with the rules that held when it began.
type job struct {
	Job
	queue      fleet.Queue
	visibility time.Duration
	held       time.Time // the attempt is ours until this time plus visibility
	back       chan struct{}
	giveBack   func() // closes back; may be repeated
}

func (a *agent) start(ctx context.Context, claimed Job, begun time.Time) {
	j := &job{Job: claimed, queue: a.queues[claimed.Queue], visibility: a.rules.Visibility.Duration(), held: begun, back: make(chan struct{})}
	j.giveBack = sync.OnceFunc(func() { close(j.back) })
	a.jobs[j.Attempt] = j
	a.log().Info("job started", "job", j.ID, "queue", j.Queue, "attempt", j.Number)
	go func() {
		a.work(ctx, j)
		a.done <- j
	}()
}

// work runs the command while the attempt is held, and reports.
func (a *agent) work(ctx context.Context, j *job) {
	run, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(a.now, func() { end(errEnding) })() //nolint:contextcheck // a.now comes from ctx
	stop := make(chan struct{})
	var helpers sync.WaitGroup
	helpers.Go(func() { a.hold(run, end, j) })
	helpers.Go(func() {
		select {
		case <-run.Done():
		case <-j.back:
			close(stop)
			sleep(run, killAfterTerm)
			end(errGivenBack)
		}
	})
	begun := time.Now()
	res := a.Run(run, stop, a.command(j))
	cause := context.Cause(run)
	end(nil)
	helpers.Wait()
	a.report(ctx, j, res, cause, time.Since(begun))
}

// command is what a queue's job runs: nothing of this process's environment but what was chosen.
func (a *agent) command(j *job) proc.Command {
	stdin, err := json.Marshal(struct {
		ID         string          `json:"id"`
		Queue      string          `json:"queue"`
		Attempt    int             `json:"attempt"`
		Priority   int             `json:"priority"`
		Payload    json.RawMessage `json:"payload"`
		Checkpoint json.RawMessage `json:"checkpoint"`
	}{j.ID, j.Queue, j.Number, j.Priority, j.Payload, j.Checkpoint})
	if err != nil { // the database's own jsonb is valid JSON
		stdin = []byte("null")
	}
	env := append(slices.Clone(a.Env), "SLUICE_JOB_ID="+j.ID, "SLUICE_QUEUE="+j.Queue, "SLUICE_ATTEMPT="+strconv.Itoa(j.Number))
	r := j.queue.Run
	return proc.Command{Argv: r.Command, Env: env, Stdin: append(stdin, '\n'), Timeout: r.Timeout.Duration(), Grace: r.StopGrace.Duration()}
}

// hold renews the attempt's visibility at a third of its time. When the time is over without an answer
// somebody else may have the job, so that its command is ended here.
func (a *agent) hold(ctx context.Context, end context.CancelCauseFunc, j *job) {
	wait := j.visibility/3 - time.Since(j.held)
	for {
		if !sleep(ctx, min(wait, time.Until(j.held.Add(j.visibility)))) {
			return
		}
		begun := time.Now()
		left := j.held.Add(j.visibility).Sub(begun)
		if left <= 0 { // this process slept: one question decides
			left = callTimeout
		}
		call, cancel := context.WithTimeout(ctx, min(left, callTimeout))
		ours, err := a.Database.Extend(call, j.Attempt)
		cancel()
		switch {
		case err == nil && ours:
			j.held, wait = begun, j.visibility/3
		case err == nil, time.Since(j.held) >= j.visibility:
			end(errNotOurs)
			return
		default:
			wait = j.visibility / 30
		}
	}
}

// report tells the database how the attempt ended.
func (a *agent) report(ctx context.Context, j *job, res proc.Result, cause error, took time.Duration) {
	log := a.log().With("job", j.ID, "queue", j.Queue, "attempt", j.Number, "seconds", int(took.Seconds()))
	var tell func(context.Context) (bool, error)
	done := res.Err == nil && res.Code == 0 && !res.TimedOut
	switch {
	case errors.Is(cause, errNotOurs):
		log.Warn("job was taken from this worker, its command was ended")
		return
	case done:
		result := resultOf(res.Stdout)
		tell = func(ctx context.Context) (bool, error) {
			ours, err := a.Database.Complete(ctx, j.Attempt, result)
			if errors.Is(err, fleet.ErrBadRequest) && result != nil {
				log.Warn("the database does not take the result, which is dropped", "error", err.Error())
				result = nil
			}
			return ours, err
		}
	case !res.TimedOut && (cause != nil || j.isBack()):
		tell = func(ctx context.Context) (bool, error) { return a.Database.Release(ctx, j.Attempt) }
		log = log.With("released", true)
	default:
		text, code := failure(j, res)
		log = log.With("failed", true, "exit_code", res.Code, "timed_out", res.TimedOut)
		tell = func(ctx context.Context) (bool, error) { return a.Database.Fail(ctx, j.Attempt, text, code) }
	}
	a.insist(ctx, tell, log)
}

func (j *job) isBack() bool {
	select {
	case <-j.back:
		return true
	default:
		return false
	}
}

// insist repeats until the database has heard it, or nobody will any more.
func (a *agent) insist(ctx context.Context, tell func(context.Context) (bool, error), log *slog.Logger) {
	for wait, tries := retryFirst/4, 0; !a.silent(); wait, tries = min(2*wait, retryMost), tries+1 {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		ours, err := tell(call)
		cancel()
		if err == nil {
			log.Info("job ended", "ours", ours)
			return
		}
		if tries == 0 {
			log.Warn("job ended, and the database has not heard it yet", "error", err.Error())
		}
		select {
		case <-a.silence:
		case <-time.After(wait):
		}
	}
	log.Warn("job ended without the database hearing it: it comes back when its visibility runs out")
}

func (a *agent) silent() bool {
	select {
	case <-a.silence:
		return true
	default:
		return false
	}
}

// resultOf is the last line of a command's output where that is a JSON object.
func resultOf(out *proc.Tail) json.RawMessage {
	line, whole := out.LastLine()
	line = bytes.TrimSpace(line)
	if !whole || len(line) == 0 || line[0] != '{' || !json.Valid(line) {
		return nil
	}
	return line
}

// failure is what is kept of an attempt that failed.
func failure(j *job, res proc.Result) (string, *int) {
	errout := res.Stderr.String()
	switch {
	case res.Err != nil:
		return fmt.Sprintf("%v\n%s", res.Err, errout), nil
	case res.TimedOut:
		return fmt.Sprintf("ended at its limit of %d s\n%s", j.queue.Run.Timeout, errout), &res.Code
	case errout == "":
		return fmt.Sprintf("exit code %d, and nothing on stderr", res.Code), &res.Code
	}
	return errout, &res.Code
}

// sleep says whether the time passed without the end of ctx.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return ctx.Err() == nil
	}
}
