package fleet

import (
	"errors"
	"time"
)

// What a port may answer, checked with errors.Is. The first four are refusals: the call certainly
// had no effect. Any other error leaves the outcome unknown.
var (
	ErrNoCapacity  = errors.New("no capacity")   // this offer cannot be had now
	ErrQuota       = errors.New("quota reached") // the account or the configured maximum is full
	ErrDenied      = errors.New("denied")        // credentials or permissions
	ErrBadRequest  = errors.New("bad request")   // the provider will never accept this request
	ErrThrottled   = errors.New("throttled")     // too many calls; nothing is known of the effect
	ErrNotFound    = errors.New("not found")     // no such object; for machines not a proof of being gone
	ErrUnavailable = errors.New("unavailable")   // time-out, reset, 5xx; nothing is known of the effect
)

// What a Store may answer.
var (
	ErrClaimLost     = errors.New("claim lost")                // another tick has taken the intent over
	ErrCommitUnknown = errors.New("outcome of commit unknown") // act on nothing
	ErrSchema        = errors.New("schema version")            // too old or too new; the text says which and what to run
	ErrNotModified   = errors.New("not modified")              // Objects.Get: the etag is still current
	ErrChanged       = errors.New("changed meanwhile")         // Versions.Put: somebody else wrote it; nothing was written
	ErrAuth          = errors.New("authentication failed")     // the secret was re-read once and still refused
)

// LaterError is an answer that says when a repeat is welcome.
type LaterError struct {
	After time.Duration // from now
	Err   error
}

// Error implements error.
func (e *LaterError) Error() string { return e.Err.Error() }

// Unwrap is the cause.
func (e *LaterError) Unwrap() error { return e.Err }

// Refused says whether an error proves that the call had no effect.
func Refused(err error) bool {
	for _, e := range []error{ErrNoCapacity, ErrQuota, ErrDenied, ErrBadRequest} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
