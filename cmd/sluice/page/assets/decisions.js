// The stream of decisions, each opening to everything that was thought on its tick.
import { $, el, keep, setText } from './dom.js';
import { amount, clock, count, moment } from './words.js';

const heard = new Set(); // lines that were there before

export function showDecisions(lines, tick, first) {
  setText($('decisions-words'), words(lines, tick));
  keep($('decisions'), lines, (l) => l.key, makeLine, updateLine);
  announce(lines, first);
}

function words(lines, tick) {
  if (!tick) return 'No tick has run yet.';
  const last = `The last tick was at ${clock(tick.at)} (${tick.function}): ${tick.message}.`;
  return lines.length ? last : `${last} Nothing was decided lately; a line appears here when something is.`;
}

// announce tells screen readers what is new, but not what was there when the page opened.
function announce(lines, first) {
  const fresh = lines.filter((l) => !heard.has(l.key));
  for (const l of fresh) heard.add(l.key);
  if (first) return;
  const news = $('news');
  for (const l of fresh.slice(0, 3).reverse()) news.append(el('p', { text: l.message }));
  if (fresh.length > 3) news.append(el('p', { text: `and ${fresh.length - 3} decisions more` }));
  while (news.children.length > 6) news.firstElementChild.remove();
}

function makeLine(l) {
  const box = el('div', { class: 'thought' });
  const details = el('details', { 'data-level': l.level },
    el('summary', {},
      el('time', { datetime: l.at, title: moment(l.at), text: clock(l.at) }), ' ',
      l.level === 'info' ? '' : el('span', { class: 'level', text: l.level }), ' ',
      el('span', { class: 'message', text: l.message }), ' ', el('span', { class: 'quiet again' })),
    box);
  details.addEventListener('toggle', () => details.open && !box.dataset.told && tell(box, l));
  return el('li', {}, details);
}

// updateLine keeps up with a line that is said again; what was opened stays what it was.
function updateLine(e, l) {
  const time = e.querySelector('time');
  setText(time, clock(l.at));
  time.dateTime = l.at;
  time.title = moment(l.at);
  setText(e.querySelector('.again'), l.times > 1 ? `${count(l.times, 'time', 'times')} since ${clock(l.from)}` : '');
}

async function tell(box, l) {
  setText(box, 'Reading what was thought …');
  try {
    const r = await fetch(`api/tick/${encodeURIComponent(l.tick)}`);
    const answer = await r.json();
    if (!r.ok) throw new Error(answer.error);
    box.replaceChildren(...thought(answer, l));
    box.dataset.told = 'yes';
  } catch (e) {
    setText(box, e instanceof TypeError ? "The page's server does not answer. Close this and open it again in a while." : e.message);
  }
}

function thought(t, l) {
  const own = t.pools.filter((p) => p.pool === l.pool);
  const others = t.pools.filter((p) => p.pool !== l.pool);
  const line = t.lines.find((x) => x.id === l.id);
  return [
    el('p', { class: 'quiet' }, `Tick ${t.id} at ${moment(l.at)}. ${t.verdict || ''} ${t.missing || ''}`),
    ...own.map((p) => pool(p, t.currency)),
    notes(t.notes),
    line?.facts ? more('The facts of this line', json(line.facts)) : '',
    others.length ? more(own.length ? `The other pools of this tick (${others.length})` : `The pools of this tick (${others.length})`, ...others.map((p) => pool(p, t.currency))) : '',
    t.story ? more('The whole tick in words', el('pre', { text: t.story, tabindex: 0 })) : '',
    el('p', { class: 'quiet' }, 'On a terminal: ', el('code', { text: `sluice explain ${t.id}` })),
  ].filter(Boolean);
}

const more = (title, ...inside) => el('details', { class: 'more' }, el('summary', { text: title }), ...inside);

const json = (facts) => el('pre', { text: JSON.stringify(facts, null, 2), tabindex: 0 });

function pool(p, currency) {
  return el('section', { class: 'plan' },
    el('h4', { text: `Pool ${p.pool}: have ${p.have}, want ${p.want}` }),
    part('Steps', p.steps, (s) => el('li', {}, el('strong', { text: s.from === s.to ? `${s.to}` : `${s.from} → ${s.to}` }), ` ${s.why}`, facts(s.facts))),
    part('The ladder that was walked', p.ladder, (r) => rung(r, currency)),
    part('Rejected', p.rejected, because),
    part('Draining', p.drained, because),
    part('Kept', p.kept, because),
    p.more ? el('p', { class: 'quiet', text: `and ${count(p.more, 'worker', 'workers')} more` }) : '');
}

function part(title, items, show) {
  if (!items.length) return '';
  return el('div', {}, el('h5', { text: title }), el('ol', {}, ...items.map(show)));
}

const because = (x) => el('li', {}, el('strong', { text: x.what }), ` ${x.why}`, facts(x.facts));

const facts = (f) => more('facts', json(f));

function rung(r, currency) {
  const price = r.price ? ` at ${amount(r.price)} ${currency} per hour` : '';
  if (r.what.startsWith('if')) return el('li', { text: `${r.what} ${r.names}${price}` });
  if (!r.took) return el('li', { class: 'quiet', text: `${r.what}: none` });
  return el('li', {}, el('strong', { text: `${r.what}: ${r.took}` }), r.names ? ` (${r.names}${price})` : '');
}

function notes(all) {
  if (!all.length) return '';
  return el('div', { class: 'plan' }, el('h4', { text: 'Beside the counts' }),
    el('ol', {}, ...all.map((n) => el('li', {}, n.level === 'info' ? '' : el('span', { class: 'level', text: n.level }), ' ', n.what ? el('strong', { text: n.what }) : '', ` ${n.why}`, facts(n.facts)))));
}
