package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"sluice/core/fleet"
)

// Same says whether a plan as it was stored is what would be decided now. Alerts are worded, and one about a
// broken config added, outside of deciding: they do not count.
func Same(stored []byte, now fleet.Plan) (bool, error) {
	b, err := json.Marshal(now)
	if err != nil {
		return false, fmt.Errorf("compare plans: %w", err)
	}
	then, err := decidedPart(stored)
	if err != nil {
		return false, err
	}
	today, err := decidedPart(b)
	return reflect.DeepEqual(then, today), err
}

func decidedPart(plan []byte) (map[string]any, error) {
	var m map[string]any
	d := json.NewDecoder(bytes.NewReader(plan))
	d.UseNumber()
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("compare plans: %w", err)
	}
	delete(m, "alerts")
	return m, nil
}
