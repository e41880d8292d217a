package sim

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// ErrCrashed is what every call of a process answers that is no more.
var ErrCrashed = errors.New("the process has crashed")

// Op is a call of a port, or a part of one between which a process may crash.
type Op string

// Ops, in the order in which a tick makes them.
const (
	OpList      Op = "list"
	OpGet       Op = "get"
	OpRecall    Op = "recall"
	OpQuote     Op = "quote"
	OpRead      Op = "read"
	OpTransact  Op = "transact" // up to the lock
	OpCommit    Op = "commit"
	OpBegin     Op = "begin"
	OpLaunch    Op = "launch"
	OpResume    Op = "resume"
	OpSuspend   Op = "suspend"
	OpTerminate Op = "terminate"
	OpSettle    Op = "settle"
	OpOutbox    Op = "outbox"
	OpSend      Op = "send"
	OpSent      Op = "sent"
	OpCharges   Op = "charges"
	OpHistory   Op = "history"
	OpAsk       Op = "ask"
)

// Ops lists those that ticks make.
func Ops() []Op {
	return []Op{
		OpList, OpGet, OpRecall, OpQuote, OpRead, OpTransact, OpCommit, OpBegin, OpLaunch, OpResume, OpSuspend, OpTerminate,
		OpSettle, OpOutbox, OpSend, OpSent, OpCharges,
	}
}

// Call is one that wants to go on.
type Call struct {
	Ctx     context.Context
	Process string
	Op      Op
	Args    string // what tells it from others: a provider, an intent, a machine
}

// Key orders calls, so that whoever picks among them picks the same again.
func (c Call) Key() string { return c.Process + " " + string(c.Op) + " " + c.Args }

// Verdict is what becomes of a call.
type Verdict struct {
	Effect bool  // it reaches the other side and does what it does
	Err    error // what the caller gets instead of the answer
	Crash  bool  // the process ends here, before or after the effect
}

// OK lets a call go on.
func OK() Verdict { return Verdict{Effect: true} }

// Fail answers with an error and has no effect.
func Fail(err error) Verdict { return Verdict{Err: err} }

// Lose has its effect, and the answer never arrives.
func Lose(err error) Verdict { return Verdict{Effect: true, Err: err} }

// CrashBefore ends the process before the call leaves.
func CrashBefore() Verdict { return Verdict{Crash: true} }

// CrashAfter ends the process after the call's effect, before its answer.
func CrashAfter() Verdict { return Verdict{Crash: true, Effect: true} }

// Fault gives calls a verdict where no gate does.
type Fault struct {
	Op      Op
	Args    string // that Call.Args contain; empty is all
	Process string // empty is all
	Skip    int    // how many such calls go on before
	Times   int    // for how many it holds; 0 is for ever
	Verdict Verdict
}

// Break adds a fault. Later ones come first.
func (w *World) Break(f Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append([]*Fault{&f}, w.faults...)
}

// Heal ends all faults.
func (w *World) Heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = nil
}

func (w *World) judge(c Call) Verdict {
	if w.gate != nil {
		return w.gate(c)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		if f.matches(c) && f.holds() {
			return f.Verdict
		}
	}
	return OK()
}

func (f *Fault) matches(c Call) bool {
	return f.Op == c.Op && strings.Contains(c.Args, f.Args) && (f.Process == "" || f.Process == c.Process)
}

// holds counts a matching call.
func (f *Fault) holds() bool {
	if f.Skip > 0 {
		f.Skip--
		return false
	}
	switch {
	case f.Times < 0:
		return false
	case f.Times == 1:
		f.Times = -1
	case f.Times > 1:
		f.Times--
	}
	return true
}

func itoa(n int) string { return strconv.Itoa(n) }
