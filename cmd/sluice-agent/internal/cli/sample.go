package cli

import (
	"context"

	"github.com/shirou/gopsutil/v4/cpu"
	"github.com/shirou/gopsutil/v4/load"
	"github.com/shirou/gopsutil/v4/mem"

	"sluice/cmd/sluice-agent/internal/agent"
)

// sample measures the machine; what cannot be measured stays unknown.
func sample(ctx context.Context) agent.Sample {
	var s agent.Sample
	if p, err := cpu.PercentWithContext(ctx, 0, false); err == nil && len(p) == 1 {
		s.CPU = &p[0]
	}
	if avg, err := load.AvgWithContext(ctx); err == nil {
		s.Load = &avg.Load1
	}
	if m, err := mem.VirtualMemoryWithContext(ctx); err == nil {
		mb := int(m.Used >> 20)
		s.Memory = &mb
	}
	return s
}
