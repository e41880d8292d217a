// What is spent, against what may be.
import { $, el, keep, setText } from './dom.js';
import { amount, clock, number } from './words.js';

export function showMoney(m, override) {
  if (!m) {
    setText($('money-words'), 'Nothing is known of the money before the first tick.');
    $('gauges').replaceChildren();
    return;
  }
  const mode = override ? 'vps_only, held there by an override' : m.mode || 'unknown';
  const asOf = m.as_of ? ` These are the figures of the tick at ${clock(m.as_of)}.` : '';
  setText($('money-words'), `Mode ${mode}.${modeWords(m, override)}${asOf}`);
  const now = m.running + m.reserved;
  const gauges = [
    { id: 'rate', name: 'Committed now, per hour', value: now, limit: m.hourly_limit, note: m.reserved ? `${amount(m.reserved)} of it is reserved for machines asked for` : 'for all machines that are not confirmed gone' },
    { id: 'hour', name: 'This hour', value: m.hour, limit: m.hourly_limit, note: 'since the full hour' },
    { id: 'day', name: 'Today', value: m.today, limit: m.daily_limit, note: m.day ? `the day ${m.day} of the config's time zone` : '' },
  ].filter((g) => !(g.id === 'hour' && m.as_of));
  keep($('gauges'), gauges, (g) => g.id, makeGauge, (e, g) => updateGauge(e, g, m.currency));
}

function modeWords(m, override) {
  if (!override && m.mode === 'vps_only') return ' No cloud machine is started in this mode; what hybrid would have done is in sluice decisions --would-have.';
  return '';
}

function makeGauge(g) {
  return el('div', { class: 'gauge' },
    el('h3', { text: g.name }),
    el('p', { class: 'figure' }),
    el('div', { class: 'bar', role: 'meter', 'aria-label': g.name, 'aria-valuemin': 0 }, el('span')),
    el('p', { class: 'quiet' }));
}

function updateGauge(e, g, currency) {
  const [, figure, bar, note] = e.children;
  const share = g.limit > 0 ? g.value / g.limit : 0;
  const level = share >= 1 ? 'over' : share >= 0.8 ? 'near' : 'fine';
  e.dataset.level = level;
  const unit = currency ? ` ${currency}` : '';
  figure.replaceChildren(el('strong', { text: amount(g.value) + unit }), g.limit > 0 ? ` of ${amount(g.limit)}` : ' (no limit is known)');
  bar.firstElementChild.style.width = `${Math.min(100, share * 100)}%`;
  bar.setAttribute('aria-valuenow', g.value);
  bar.setAttribute('aria-valuemax', g.limit || g.value || 1);
  bar.setAttribute('aria-valuetext', `${amount(g.value)}${unit} of ${amount(g.limit)}`);
  const words = { over: 'the limit is reached', near: 'near the limit', fine: '' }[level];
  setText(note, [g.limit > 0 ? `${number(Math.round(share * 100))} % of the limit` : '', words, g.note].filter(Boolean).join(' · '));
}
