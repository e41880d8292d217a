package postgres

// What tests look at from outside.
const (
	WaitingJobs = waitingJobs
	RunningJobs = runningJobs
)

// Also looked at.
var (
	Migrations = migrations
	Roles      = roles
)
