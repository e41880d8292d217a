// Workers as cards that move through the columns of their life.
import { $, el, keep, setText } from './dom.js';
import { amount, count, number, short, since } from './words.js';
import { buttonsFor } from './controls.js';

const titles = {
  asked: ['Asked for', 'launches whose machine has no row yet'],
  booting: ['Booting', 'started, and not heard of yet'],
  ready: ['Ready', 'waiting for a job'],
  working: ['Working', 'with jobs in hand'],
  draining: ['Draining', 'finishing what it has'],
  suspended: ['Suspended', 'kept, and quick to wake'],
  ended: ['Ended lately', 'in the last ten minutes'],
};
const manyWorkers = 50; // from here on the counts by pool are open by themselves
const calm = matchMedia('(prefers-reduced-motion: reduce)');
let all; // as the last event had it
let found; // what the search found
let opened = false;
let currency = '';

export function showWorkers(w, money) {
  all = w;
  currency = money?.currency || '';
  if ($('find').value.trim()) search();
  else found = undefined;
  paint();
}

$('find').addEventListener('input', () => {
  if ($('find').value.trim()) search();
  else {
    found = undefined;
    paint();
  }
});

let asking = 0;
async function search() {
  const mine = ++asking;
  const find = $('find').value.trim();
  try {
    const r = await fetch(`api/workers?find=${encodeURIComponent(find)}`);
    if (!r.ok) throw new Error(r.statusText);
    const w = await r.json();
    if (mine !== asking || $('find').value.trim() !== find) return;
    found = w;
    paint();
  } catch {
    if (mine === asking) setText($('workers-words'), 'The search was not answered; what is shown is older.');
  }
}

function paint() {
  if (!all) return;
  const shown = found || all;
  $('workers-words').ariaLive = found ? 'polite' : 'off'; // what a search found is told, not each worker that comes and goes
  setText($('workers-words'), words());
  const before = places();
  keep($('board'), shown.columns, (c) => c.id, makeColumn, updateColumn);
  move(before);
  showPools();
}

function words() {
  if (found) return `${count(found.match, 'worker matches', 'workers match')} of those that live or ended lately`;
  if (all.total) return `${count(all.total, 'worker lives', 'workers live')}.`;
  return 'No worker lives. The VPS shows up when its sluice-agent has registered; machines when a tick starts them.';
}

function makeColumn(c) {
  const [title, help] = titles[c.id];
  return el('section', { class: 'column', 'aria-label': title },
    el('h3', { title: help }, title, ' ', el('span', { class: 'number' })),
    el('ul', { class: 'cards' }),
    el('p', { class: 'quiet' }));
}

function updateColumn(e, c) {
  const [title, cards, more] = e.children;
  e.dataset.none = c.count ? 'no' : 'yes';
  setText(title.querySelector('.number'), number(c.count));
  keep(cards, c.cards, (w) => w.id, (w) => makeCard(w), updateCard);
  const rest = c.count - c.cards.reduce((n, w) => n + (w.count || 1), 0);
  setText(more, rest > 0 ? `and ${number(rest)} more` : '');
}

function makeCard(w) {
  return el('li', { class: 'card' },
    el('details', {},
      el('summary', {}, el('span', { class: 'name', text: short(w.id), title: w.id }), ' ', el('span', { class: 'pool', text: w.pool }), el('span', { class: 'brief' })),
      el('dl')),
    el('div', { class: 'buttons' }));
}

function updateCard(e, w) {
  const seen = JSON.stringify(w) + currency;
  if (e.seen !== seen) {
    e.seen = seen;
    e.dataset.state = w.state;
    setText(e.querySelector('.brief'), brief(w));
    e.querySelector('dl').replaceChildren(...facts(w));
  }
  buttonsFor(e.querySelector('.buttons'), w);
}

function brief(w) {
  if (w.count) return count(w.count, 'machine', 'machines');
  const parts = [];
  if (w.state === 'failed') parts.push('failed');
  if (w.jobs || w.state === 'processing') parts.push(count(w.jobs, 'job', 'jobs'));
  if (w.cloud && w.price) parts.push(`${amount(w.price)}/h`);
  if (!w.cloud) parts.push('your own');
  return parts.join(' · ');
}

function facts(w) {
  const out = [];
  const row = (name, value) => value && out.push(el('dt', { text: name }), el('dd', {}, value));
  const age = (at) => {
    if (!at) return '';
    const e = el('span');
    since(e, at);
    return e;
  };
  row('State', w.state);
  row('In it since', age(w.since));
  row('Heard of', age(w.heard));
  row('Jobs', w.slots ? `${w.jobs} of ${w.slots}` : '');
  row('Place', w.place);
  row('Type', w.type);
  row('Machine', w.machine);
  row('Cost', w.cost ? `${amount(w.cost)} ${currency}` : '');
  row('Why', w.why);
  row('Id', w.id);
  return out;
}

function showPools() {
  const box = $('pools-box');
  const several = all.pools.length > 1 || all.total > manyWorkers;
  box.hidden = !several;
  if (!opened && all.total > manyWorkers) {
    opened = true; // once; whoever closes it keeps it closed
    box.open = true;
  }
  const ids = all.columns.map((c) => c.id);
  const head = el('tr', {}, el('th', { scope: 'col', text: 'Pool' }), ...ids.map((id) => el('th', { scope: 'col', text: titles[id][0] })));
  const rows = all.pools.map((p) => el('tr', {}, el('th', { scope: 'row', text: p.pool }), ...ids.map((id) => el('td', { text: p.counts[id] ? number(p.counts[id]) : '–' }))));
  $('pools').replaceChildren(el('thead', {}, head), el('tbody', {}, ...rows));
  setText($('pools-more'), all.more_pools ? `and ${count(all.more_pools, 'pool', 'pools')} more` : '');
}

const places = () => new Map([...document.querySelectorAll('.card')].map((c) => [c.dataset.key, c.getBoundingClientRect()]));

// move lets cards glide from where they were, unless the visitor wants calm.
function move(before) {
  if (calm.matches) return;
  for (const card of document.querySelectorAll('.card')) {
    const was = before.get(card.dataset.key);
    const is = card.getBoundingClientRect();
    if (!was) card.animate([{ opacity: 0 }, { opacity: 1 }], 300);
    else if (was.x !== is.x || was.y !== is.y) {
      card.animate([{ transform: `translate(${was.x - is.x}px, ${was.y - is.y}px)` }, { transform: 'none' }], { duration: 400, easing: 'ease-in-out' });
    }
  }
}
