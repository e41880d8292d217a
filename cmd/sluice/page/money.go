package page

import (
	"math"
	"time"

	"sluice/core/fleet"
	"sluice/core/spend"
)

// money is where it stands now, by the books; where the config is not known, where it stood on the last tick; nil
// before the first.
func (r *reader) money(m fleet.Memory) *moneyView {
	if r.config == nil {
		return r.moneyThen()
	}
	books, err := spend.Open(fleet.Snapshot{Config: *r.config, Memory: m})
	if err != nil { // a zone that this machine does not know
		return r.moneyThen()
	}
	from := m.Now.Truncate(time.Hour)
	hour := fleet.Money(0)
	for _, l := range spend.Lines(m, m.Now) {
		hour += l.Between(from, from.Add(time.Hour))
	}
	v := viewMoney(books.Spend)
	v.Currency, v.Mode, v.Hour = r.config.Currency, r.config.Mode, shownAmount(hour)
	return v
}

func (r *reader) moneyThen() *moneyView {
	if r.last == nil {
		return nil
	}
	v := viewMoney(r.spend)
	v.Mode, v.AsOf = r.mode, &r.last.At
	return v
}

func viewMoney(s fleet.Spend) *moneyView {
	return &moneyView{
		Running: shownAmount(s.Rate), Reserved: shownAmount(s.Reserved), Today: shownAmount(s.Today), Day: s.Day,
		Hourly: shownAmount(s.Hourly), Daily: shownAmount(s.Daily),
	}
}

// shownAmount is no finer than a ten-thousandth, so that what nobody sees is not sent.
func shownAmount(m fleet.Money) float64 { return math.Round(m.Float()*1e4) / 1e4 }
