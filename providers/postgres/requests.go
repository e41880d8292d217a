package postgres

import (
	"context"
	"fmt"
	"regexp"

	"sluice/core/fleet"
)

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// Ask implements fleet.Requests. A request with an id that is known already is not stored again.
func (d *DB) Ask(ctx context.Context, r fleet.Request) error {
	if err := d.sensible(ctx, r); err != nil {
		return fmt.Errorf("ask for %s: %w", r.Kind, err)
	}
	_, err := d.exec(ctx, "store request", `INSERT INTO sluice_requests (id, kind, target, who, why, at)
		VALUES (coalesce($1, gen_random_uuid()::text), $2, $3, $4, $5, coalesce($6, sluice_clock())) ON CONFLICT (id) DO NOTHING`,
		orNull(r.ID), string(r.Kind), r.Target, r.Who, r.Why, stamp(r.At))
	return err
}

// sensible refuses what no tick could act on, while the person who asks is still there.
func (d *DB) sensible(ctx context.Context, r fleet.Request) error {
	switch {
	case r.Who == "":
		return fmt.Errorf("%w: say who asks", fleet.ErrBadRequest)
	case r.Kind == fleet.RequestResume && r.Why == "":
		return fmt.Errorf("%w: say why", fleet.ErrBadRequest)
	case r.Kind == fleet.RequestAdopt && r.Target == "":
		return fmt.Errorf("%w: name a machine, or all", fleet.ErrBadRequest)
	case r.Kind == fleet.RequestDrain:
		return d.drainable(ctx, r.Target)
	case r.Kind != fleet.RequestResume && r.Kind != fleet.RequestAdopt:
		return fmt.Errorf("%w: there is no such request", fleet.ErrBadRequest)
	}
	return nil
}

func (d *DB) drainable(ctx context.Context, worker string) error {
	if !uuid.MatchString(worker) {
		return fmt.Errorf("%w: %q is not a worker's id", fleet.ErrBadRequest, worker)
	}
	n, err := d.exec(ctx, "find worker", `SELECT FROM workers WHERE id = $1::uuid AND status IN ('provisioning', 'ready', 'draining', 'suspended')`, worker)
	if err == nil && n == 0 {
		return fmt.Errorf("worker %s: %w among those that live", worker, fleet.ErrNotFound)
	}
	return err
}
