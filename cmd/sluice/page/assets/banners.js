// What somebody should know before all else, each with what to do about it.
import { $, el, keep, setText, withCode } from './dom.js';
import { clock, moment, span } from './words.js';

export function showBanners(s, trouble, silent, ended) {
  const all = [];
  if (ended) all.push({ id: 'ended', level: 'near', title: 'This page has ended', text: 'The program that served it has come to its end. Below is how things were then; the page goes on by itself when the program is started again.' });
  if (silent) all.push({ id: 'silent', level: 'over', title: "The page's server does not answer", since: `Silent for ${span(silent)}. `, text: `The page comes back by itself when the server does; if it was ended, start it again.` });
  if (trouble) {
    all.push({ id: 'trouble', level: 'over', title: trouble.title, since: `Since ${clock(trouble.since)}, for ${span(trouble.for_seconds)}. `, text: trouble.advice });
  }
  if (s?.override) {
    all.push({ id: 'override', level: 'over', title: 'Spending is stopped: the mode is held at vps_only', text: `Since ${moment(s.override.since)}, by ${s.override.who}: ${s.override.why}. Every cloud worker is drained, and none is started until a person lifts this: look at what was spent below, then`, code: 'sluice resume-cloud --reason "…"' });
  }
  if (s?.late && !trouble && !silent) {
    all.push({ id: 'late', level: 'near', title: 'No tick runs', text: `The last one was at ${moment(s.tick.at)}. Nothing is started or stopped meanwhile: look at the timer or schedule that fires it, or run one`, code: 'sluice tick' });
  }
  if (s?.config_broken) {
    all.push({ id: 'config', level: 'near', title: 'The config cannot be read', text: `${s.config_broken}. The last good one holds, and nothing grows. All that is wrong with it:`, code: 'sluice validate' });
  }
  keep($('banners'), all, (b) => b.id, make, update);
}

const make = () => el('div', { class: 'banner' }, el('h2'), el('p', {}, el('span', { 'aria-hidden': 'true' }), el('span'), ' ', el('code')));

function update(e, b) {
  e.dataset.level = b.level;
  setText(e.querySelector('h2'), b.title);
  const [since, text] = e.querySelectorAll('p > span');
  setText(since, b.since || ''); // it changes every second, and would be read out every second
  withCode(text, b.text);
  setText(e.querySelector('p > code'), b.code || '');
  e.querySelector('p > code').hidden = !b.code;
}
