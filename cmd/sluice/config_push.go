package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"sluice/core/fleet"
)

// replacement is how a config comes into force.
type replacement struct {
	to    string
	why   string
	yes   bool // do not ask
	blind bool // do not plan
}

func (r *replacement) flags(cmd *cobra.Command) {
	addTo(cmd, &r.to)
	addWithoutPlan(cmd, &r.blind)
	cmd.Flags().BoolVar(&r.yes, "yes", false, "write without asking, for scripts")
}

func (a *app) configPushCommand() *cobra.Command {
	var r replacement
	cmd := &cobra.Command{
		Use:   "push FILE",
		Short: "Put a config into force",
		Long: "Checks a config, says which settings change, what the next tick would do otherwise and what that costs, asks, and writes it\n" +
			"whole or not at all. Where somebody else changes the config meanwhile nothing is written. What it was is kept: `config versions`.",
		Example: "  sluice config push new.json\n  sluice config push new.json --yes --reason \"budget raised\"\n  sluice config push first.json --to /etc/sluice/scheduler.json --without-plan",
		Args:    exactly(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.configPush(cmd.Context(), args[0], r) },
	}
	r.flags(cmd)
	cmd.Flags().StringVar(&r.why, "reason", "", "why, kept with what is replaced")
	return cmd
}

func (a *app) configPush(ctx context.Context, path string, r replacement) error {
	if err := a.canAsk(r); err != nil {
		return err
	}
	store, target, err := a.versions(r.to)
	if err != nil {
		return err
	}
	after, err := a.proposed(ctx, path, target)
	if err != nil {
		return err
	}
	return a.replace(ctx, store, target, after, r)
}

func (a *app) configRollbackCommand() *cobra.Command {
	var r replacement
	cmd := &cobra.Command{
		Use:   "rollback [VERSION] --reason TEXT",
		Short: "Put a replaced config back into force",
		Long: "Puts the config that was replaced last back, or the version that is named, byte for byte: compared, asked for and kept\n" +
			"as by `config push`. A version that is no longer valid is refused.",
		Example: "  sluice config rollback --reason \"too many machines\"\n  sluice config rollback 20270114T093100.000Z-1a2b3c4d5e6f --reason \"too many machines\"",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.configRollback(cmd.Context(), strings.Join(args, ""), r)
		},
	}
	r.flags(cmd)
	addReason(cmd, &r.why)
	return cmd
}

func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usageError{fmt.Errorf("want `%s`, got %d arguments", cmd.UseLine(), len(args))}
	}
	return nil
}

func (a *app) configRollback(ctx context.Context, id string, r replacement) error {
	if r.why == "" {
		return usageError{errNoReason}
	}
	if err := a.canAsk(r); err != nil {
		return err
	}
	store, target, err := a.versions(r.to)
	if err != nil {
		return err
	}
	if id == "" {
		if id, err = lastOther(ctx, store); err != nil {
			return err
		}
	}
	after, err := a.kept(ctx, store, id)
	if err != nil {
		return err
	}
	if after, err = a.acceptable(after); err != nil {
		return err
	}
	return a.replace(ctx, store, target, after, r)
}

// lastOther is the newest version that says something else than the config in force.
func lastOther(ctx context.Context, store fleet.Versions) (string, error) {
	now, err := store.Get(ctx, "")
	if err != nil && !errors.Is(err, fleet.ErrNotFound) {
		return "", err
	}
	kept, err := store.Kept(ctx)
	if err != nil {
		return "", err
	}
	for _, k := range kept {
		if k.ETag != now.ETag {
			return k.ID, nil
		}
	}
	return "", errors.New("no other version is kept: `sluice config push` has not replaced this config yet")
}

// replace compares, asks and writes, on the condition that what it compared with is still there.
func (a *app) replace(ctx context.Context, store fleet.Versions, target string, after side, r replacement) error {
	before, err := a.present(ctx, store, target)
	if err != nil {
		return err
	}
	c, err := a.compare(ctx, target, before, after, r.blind)
	if err != nil {
		return err
	}
	if !a.asJSON {
		if err := a.tellComparison(c); err != nil {
			return err
		}
	}
	if !c.SameBytes {
		if err := a.agreed(ctx, target, r); err != nil {
			return err
		}
		change := fleet.Change{Bytes: after.object.Bytes, Who: a.who(), Why: r.why}
		if before.object != nil {
			change.Old = before.object.ETag
		}
		if _, err := store.Put(ctx, change); err != nil {
			return err
		}
		c.Written = true
	}
	return a.tellWritten(c, target)
}

func (a *app) tellWritten(c comparison, target string) error {
	switch {
	case a.asJSON:
		return a.writeJSON(c)
	case !c.Written:
		return a.say("Nothing was written.")
	case c.First:
		return a.say("\nWritten to %s; the next tick takes it.", target)
	}
	return a.say("\nWritten to %s; the next tick takes it. What it was is kept: `sluice config rollback --reason TEXT` puts it back.", target)
}

// canAsk refuses at once where nobody could answer.
func (a *app) canAsk(r replacement) error {
	in, ok := a.in.(*os.File)
	if r.yes || ok && term.IsTerminal(int(in.Fd())) && !a.asJSON {
		return nil
	}
	return usageError{errors.New("nobody can be asked here, since input is no terminal or --json is set: look with `sluice config diff`, then say --yes")}
}

// agreed asks, unless that was said before.
func (a *app) agreed(ctx context.Context, target string, r replacement) error {
	if r.yes {
		return nil
	}
	if err := writeAll(a.out, "\nWrite this to "+target+"? [y/N] "); err != nil {
		return err
	}
	answer := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(a.in).ReadString('\n') // an end without an answer is a no
		answer <- line
	}()
	select {
	case line := <-answer:
		if said := strings.ToLower(strings.TrimSpace(line)); said == "y" || said == "yes" {
			return nil
		}
		a.complain("nothing was written")
		return exitError(exitFailed)
	case <-ctx.Done():
		return errors.New("interrupted, nothing was written")
	}
}
