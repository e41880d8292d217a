package config

import (
	"os"
	"testing"
)

// BenchmarkParse reads the hybrid example, as every tick does.
func BenchmarkParse(b *testing.B) {
	file, err := os.ReadFile("../../docs/examples/hybrid.json")
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("hybrid.json", file, Env{}); err != nil {
			b.Fatal(err)
		}
	}
}
