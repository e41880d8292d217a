package fleet

// Stable codes: logs, queries and stored decisions refer to them.

// Code implements Reason.
func (SkipRepeated) Code() string { return "skip.repeated" }

// Code implements Reason.
func (SkipNotDue) Code() string { return "skip.not_due" }

// Code implements Reason.
func (SkipNotConfigured) Code() string { return "skip.not_configured" }

// Code implements Reason.
func (Unobserved) Code() string { return "unobserved" }

// Code implements Reason.
func (BacklogDepth) Code() string { return "backlog.depth" }

// Code implements Reason.
func (BacklogAge) Code() string { return "backlog.age" }

// Code implements Reason.
func (BacklogStep) Code() string { return "backlog.step" }

// Code implements Reason.
func (Awaiting) Code() string { return "awaiting" }

// Code implements Reason.
func (BelowThreshold) Code() string { return "below_threshold" }

// Code implements Reason.
func (FloorBaseline) Code() string { return "floor.baseline" }

// Code implements Reason.
func (FloorWork) Code() string { return "floor.work" }

// Code implements Reason.
func (FloorMinReady) Code() string { return "floor.min_ready" }

// Code implements Reason.
func (Idle) Code() string { return "idle" }

// Code implements Reason.
func (LimitMode) Code() string { return "limit.mode" }

// Code implements Reason.
func (LimitOverride) Code() string { return "limit.override" }

// Code implements Reason.
func (LimitNotEnabled) Code() string { return "limit.not_enabled" }

// Code implements Reason.
func (LimitManual) Code() string { return "limit.manual_only" }

// Code implements Reason.
func (LimitCeiling) Code() string { return "limit.ceiling" }

// Code implements Reason.
func (LimitProvider) Code() string { return "limit.provider" }

// Code implements Reason.
func (LimitCooldown) Code() string { return "limit.cooldown" }

// Code implements Reason.
func (LimitHourly) Code() string { return "limit.hourly" }

// Code implements Reason.
func (LimitDaily) Code() string { return "limit.daily" }

// Code implements Reason.
func (LimitPeriod) Code() string { return "limit.period" }

// Code implements Reason.
func (LimitBreaker) Code() string { return "limit.breaker" }

// Code implements Reason.
func (LimitFrozen) Code() string { return "limit.frozen" }

// Code implements Reason.
func (LimitOffers) Code() string { return "limit.offers" }

// Code implements Reason.
func (OfferNoPrice) Code() string { return "offer.no_price" }

// Code implements Reason.
func (OfferDearer) Code() string { return "offer.dearer" }

// Code implements Reason.
func (OfferAboveCap) Code() string { return "offer.above_cap" }

// Code implements Reason.
func (OfferCoolingOff) Code() string { return "offer.cooling_off" }

// Code implements Reason.
func (OfferPlaceUnknown) Code() string { return "offer.place_unknown" }

// Code implements Reason.
func (OfferFull) Code() string { return "offer.full" }

// Code implements Reason.
func (OfferWaitsForSpot) Code() string { return "offer.waits_for_spot" }

// Code implements Reason.
func (OfferOverBudget) Code() string { return "offer.over_budget" }

// Code implements Reason.
func (KeptBusy) Code() string { return "kept.busy" }

// Code implements Reason.
func (KeptBooting) Code() string { return "kept.booting" }

// Code implements Reason.
func (KeptIdle) Code() string { return "kept.idle" }

// Code implements Reason.
func (KeptDepth) Code() string { return "kept.depth" }

// Code implements Reason.
func (KeptUnknown) Code() string { return "kept.unknown" }

// Code implements Reason.
func (KeptCooldown) Code() string { return "kept.cooldown" }

// Code implements Reason.
func (KeptWanted) Code() string { return "kept.wanted" }

// Code implements Reason.
func (KeptMinCharge) Code() string { return "kept.min_charge" }

// Code implements Reason.
func (KeptDraining) Code() string { return "kept.draining" }

// Code implements Reason.
func (KeptSuspended) Code() string { return "kept.suspended" }

// Code implements Reason.
func (KeptEnding) Code() string { return "kept.ending" }

// Code implements Reason.
func (DrainIdle) Code() string { return "drain.idle" }

// Code implements Reason.
func (DrainDry) Code() string { return "drain.dry" }

// Code implements Reason.
func (DrainMode) Code() string { return "drain.mode" }

// Code implements Reason.
func (DrainNotEnabled) Code() string { return "drain.not_enabled" }

// Code implements Reason.
func (DrainSurplus) Code() string { return "drain.surplus" }

// Code implements Reason.
func (DrainExpiry) Code() string { return "drain.expiry" }

// Code implements Reason.
func (DrainStale) Code() string { return "drain.stale" }

// Code implements Reason.
func (DrainUnhealthy) Code() string { return "drain.unhealthy" }

// Code implements Reason.
func (DrainBoot) Code() string { return "drain.boot_timeout" }

// Code implements Reason.
func (DrainRequested) Code() string { return "drain.requested" }

// Code implements Reason.
func (DrainAbandoned) Code() string { return "drain.abandoned" }

// Code implements Reason.
func (Undrained) Code() string { return "undrained" }

// Code implements Reason.
func (DrainDone) Code() string { return "drain.done" }

// Code implements Reason.
func (DrainForced) Code() string { return "drain.forced" }

// Code implements Reason.
func (SuspendedLong) Code() string { return "suspended.long" }

// Code implements Reason.
func (Gone) Code() string { return "gone" }

// Code implements Reason.
func (Back) Code() string { return "back" }

// Code implements Reason.
func (NotListed) Code() string { return "not_listed" }

// Code implements Reason.
func (AllUnhealthy) Code() string { return "all_unhealthy" }

// Code implements Reason.
func (Adopted) Code() string { return "intent.adopted" }

// Code implements Reason.
func (Repeated) Code() string { return "intent.repeated" }

// Code implements Reason.
func (Waiting) Code() string { return "intent.waiting" }

// Code implements Reason.
func (Abandoned) Code() string { return "intent.abandoned" }

// Code implements Reason.
func (Released) Code() string { return "intent.released" }

// Code implements Reason.
func (OrphanSeen) Code() string { return "orphan.seen" }

// Code implements Reason.
func (OrphanRemoved) Code() string { return "orphan.removed" }

// Code implements Reason.
func (OrphansTooMany) Code() string { return "orphan.too_many" }

// Code implements Reason.
func (PlaceUnknown) Code() string { return "place.unknown" }

// Code implements Reason.
func (DailyLimit) Code() string { return "daily_limit" }

// Code implements Reason.
func (PeriodLimit) Code() string { return "period_limit" }

// Code implements Reason.
func (NearDailyLimit) Code() string { return "daily_limit.near" }

// Code implements Reason.
func (ResumedCloud) Code() string { return "cloud.resumed" }

// Code implements Reason.
func (ResumeRefused) Code() string { return "cloud.resume_refused" }

// Code implements Reason.
func (TopTier) Code() string { return "backlog.top_tier" }

// Code implements Reason.
func (BootFailing) Code() string { return "boot.failing" }

// Code implements Reason.
func (ConfigBroken) Code() string { return "config.broken" }

// Reasons returns a zero value of every reason, in the order of their declaration.
func Reasons() []Reason {
	return []Reason{
		SkipRepeated{},
		SkipNotDue{},
		SkipNotConfigured{},
		Unobserved{},
		BacklogDepth{},
		BacklogAge{},
		BacklogStep{},
		Awaiting{},
		BelowThreshold{},
		FloorBaseline{},
		FloorWork{},
		FloorMinReady{},
		Idle{},
		LimitMode{},
		LimitOverride{},
		LimitNotEnabled{},
		LimitManual{},
		LimitCeiling{},
		LimitProvider{},
		LimitCooldown{},
		LimitHourly{},
		LimitDaily{},
		LimitPeriod{},
		LimitBreaker{},
		LimitFrozen{},
		LimitOffers{},
		OfferNoPrice{},
		OfferDearer{},
		OfferAboveCap{},
		OfferCoolingOff{},
		OfferPlaceUnknown{},
		OfferFull{},
		OfferWaitsForSpot{},
		OfferOverBudget{},
		KeptBusy{},
		KeptBooting{},
		KeptIdle{},
		KeptDepth{},
		KeptUnknown{},
		KeptCooldown{},
		KeptWanted{},
		KeptMinCharge{},
		KeptDraining{},
		KeptSuspended{},
		KeptEnding{},
		DrainIdle{},
		DrainDry{},
		DrainMode{},
		DrainNotEnabled{},
		DrainSurplus{},
		DrainExpiry{},
		DrainStale{},
		DrainUnhealthy{},
		DrainBoot{},
		DrainRequested{},
		DrainAbandoned{},
		Undrained{},
		DrainDone{},
		DrainForced{},
		SuspendedLong{},
		Gone{},
		Back{},
		NotListed{},
		AllUnhealthy{},
		Adopted{},
		Repeated{},
		Waiting{},
		Abandoned{},
		Released{},
		OrphanSeen{},
		OrphanRemoved{},
		OrphansTooMany{},
		PlaceUnknown{},
		DailyLimit{},
		PeriodLimit{},
		NearDailyLimit{},
		ResumedCloud{},
		ResumeRefused{},
		TopTier{},
		BootFailing{},
		ConfigBroken{},
	}
}
