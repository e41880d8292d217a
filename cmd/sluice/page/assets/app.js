// The page follows one stream of events, and each part shows its share of the state.
import { $, setText } from './dom.js';
import { moment, now, refresh, setClock, span } from './words.js';
import { showBanners } from './banners.js';
import { showControls } from './controls.js';
import { showDecisions } from './decisions.js';
import { showMoney } from './money.js';
import { showQueues } from './queues.js';
import { showWorkers } from './workers.js';

const patience = 15000; // ms without an event before the stream is opened anew
const again = 2000; // ms between two attempts
let stream;
let state;
let trouble;
let read = false; // there was a reading of the database
let age = 0; // of it, in seconds, when the last event came
let heardAt = performance.now(); // of the last event
let first = true;
let nextTry = 0;
let ended = false; // the server has said that it ends

function open() {
  stream?.close();
  nextTry = performance.now() + patience;
  stream = new EventSource('api/events');
  stream.onmessage = (e) => take(JSON.parse(e.data));
  stream.addEventListener('end', () => {
    ended = true;
    stream.close();
    nextTry = performance.now() + again; // it may be started again
    beat();
  });
  stream.onerror = () => {
    stream.close();
    nextTry = performance.now() + again;
  };
}

function take(e) {
  ended = false;
  heardAt = performance.now();
  nextTry = heardAt + Math.max(patience, 4000 * e.every_seconds);
  trouble = e.trouble;
  read = Boolean(e.at);
  age = e.age_seconds;
  if (read) setClock(e.at, e.age_seconds);
  if (e.state) {
    state = e.state;
    paint();
  }
  beat();
}

function paint() {
  const s = state;
  document.title = s.title;
  setText($('title'), s.title);
  setText($('subtitle'), s.name ? `Install ${s.name}` : '');
  const bare = s.empty && s.workers.total === 0;
  $('welcome').hidden = !read || !s.empty;
  $('content').hidden = !read || bare;
  showControls(s.controls || []);
  if ($('content').hidden) return;
  showMoney(s.money, s.override);
  showQueues(s.queues);
  showWorkers(s.workers, s.money);
  showDecisions(s.lines, s.tick, first);
  first = false;
}

// beat is done every second: ages count on, and a silent stream is opened anew.
function beat() {
  const quiet = (performance.now() - heardAt) / 1000;
  const silent = quiet > 6 && !ended ? quiet : 0;
  const old = Boolean(trouble || silent || ended);
  document.body.dataset.old = old ? 'yes' : 'no';
  refresh();
  const t = trouble && { ...trouble, for_seconds: trouble.for_seconds + quiet };
  showBanners(state, t, silent, ended);
  setText($('pulse'), pulse(old, quiet));
  $('pulse').dataset.level = old && !ended ? 'over' : 'fine';
  if (performance.now() > nextTry) open();
}

function pulse(old, quiet) {
  if (ended) return 'Ended';
  if (!read) return old ? 'Nothing was read yet' : 'Connecting …';
  return old ? `Last known state, ${span(age + quiet)} old` : `Live · ${moment(now()).slice(11)}`;
}

// A page that nobody sees needs no stream.
document.addEventListener('visibilitychange', () => {
  if (document.hidden) {
    stream?.close();
    nextTry = Infinity;
  } else {
    heardAt = performance.now();
    open();
  }
});

open();
setInterval(() => !document.hidden && beat(), 1000);
