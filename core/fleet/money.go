package fleet

import (
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strings"
	"time"
)

// Money is an amount in millionths of the config's currency. Negative amounts are never stored.
type Money int64

// Units of money.
const (
	Micro Money = 1
	Cent  Money = 10_000
	Unit  Money = 1_000_000
)

// ParseMoney reads a decimal string such as "0.0416" exactly, rounding what is finer than a
// millionth up, because a price that is rounded down would let spend pass a limit.
func ParseMoney(s string) (Money, error) {
	r, ok := new(big.Rat).SetString(s)
	if !ok || strings.ContainsAny(s, "eE/+_xX") || r.Sign() < 0 {
		return 0, fmt.Errorf("parse money %q: want a decimal such as 0.0416", s)
	}
	r.Mul(r, big.NewRat(int64(Unit), 1))
	q, rem := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rem.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return 0, fmt.Errorf("parse money %q: too large", s)
	}
	return Money(q.Int64()), nil
}

// For is what a price per hour costs over d, rounded up to the next millionth; zero for d <= 0, and the most there is
// where it would be more.
func (m Money) For(d time.Duration) Money {
	if d <= 0 || m <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(m), uint64(d))
	lo, carry := bits.Add64(lo, uint64(time.Hour)-1, 0)
	if hi += carry; hi >= uint64(time.Hour) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Hour))
	return Money(min(q, math.MaxInt64))
}

// Float is for people and metrics, never for sums.
func (m Money) Float() float64 { return float64(m) / float64(Unit) }

// String writes at least two decimals and no more than needed, such as "0.079" or "5.00".
func (m Money) String() string {
	sign := ""
	if m < 0 {
		sign, m = "-", -m
	}
	s := fmt.Sprintf("%d.%06d", m/Unit, m%Unit)
	for strings.HasSuffix(s, "0") && len(s)-strings.IndexByte(s, '.') > 3 {
		s = s[:len(s)-1]
	}
	return sign + s
}
