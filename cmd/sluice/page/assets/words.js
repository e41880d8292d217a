// Numbers and times as people say them.

let base = 0; // the database's time, in ms, at ...
let taken = 0; // ... this reading of this browser's own steady clock

// setClock takes the database's time over; a browser's own date may be wrong.
export function setClock(at, ageSeconds) {
  base = Date.parse(at) + ageSeconds * 1000;
  taken = performance.now();
}

export const now = () => base + (performance.now() - taken);

export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 120) return `${s} s`;
  if (s < 7200) return two(Math.floor(s / 60), 'min', s % 60, 's');
  const h = Math.floor(s / 3600);
  if (h < 48) return two(h, 'h', Math.floor(s / 60) % 60, 'min');
  return two(Math.floor(h / 24), 'days', h % 24, 'h');
}

const two = (big, bigUnit, small, smallUnit) => (small ? `${big} ${bigUnit} ${small} ${smallUnit}` : `${big} ${bigUnit}`);

export const ago = (at) => (at ? `${span((now() - Date.parse(at)) / 1000)} ago` : 'never');

export const number = (n) => n.toLocaleString('en');

export const count = (n, one, many) => `${number(n)} ${n === 1 ? one : many}`;

export const amount = (n) => n.toLocaleString('en', { minimumFractionDigits: 2, maximumFractionDigits: 4 });

export const clock = (at) => new Date(at).toISOString().slice(11, 19);

export const moment = (at) => new Date(at).toISOString().slice(0, 19).replace('T', ' ') + ' UTC';

export const short = (id) => (id.length > 12 ? id.slice(0, 8) : id);

// since keeps an element saying how long ago a time was; refresh counts on.
export function since(e, at, before = '', after = ' ago') {
  e.dataset.since = at || '';
  e.dataset.before = before;
  e.dataset.after = after;
  tell(e);
}

function tell(e) {
  const text = e.dataset.since ? e.dataset.before + span((now() - Date.parse(e.dataset.since)) / 1000) + e.dataset.after : '';
  if (e.textContent !== text) e.textContent = text;
}

export const refresh = () => document.querySelectorAll('[data-since]').forEach(tell);
