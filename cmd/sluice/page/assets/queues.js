// Queues with their last hour.
import { $, el, keep, setText } from './dom.js';
import { count, number, span, since } from './words.js';

const charts = new WeakMap(); // element of a queue → its chart
const dark = matchMedia('(prefers-color-scheme: dark)');
let last;

export function showQueues(q) {
  last = q;
  const words = $('queues-words');
  if (q.at) since(words, q.at, 'Read ', ' ago, by the last tick.');
  else {
    delete words.dataset.since;
    setText(words, 'No tick has read any queue in the last hour.');
  }
  keep($('queues'), q.shown, (x) => x.name, makeQueue, updateQueue);
  setText($('queues-more'), q.more ? `and ${count(q.more, 'queue', 'queues')} more with fewer jobs, ${number(q.more_waiting)} waiting in them` : '');
}

// A chart's colours are drawn, not styled.
dark.addEventListener('change', () => {
  for (const e of $('queues').children) {
    charts.get(e)?.destroy();
    charts.delete(e);
  }
  if (last) showQueues(last);
});

function makeQueue(q) {
  return el('article', { class: 'queue' },
    el('h3', { text: q.name }),
    el('p', { class: 'figure' }),
    el('div', { class: 'chart', role: 'img' }));
}

function updateQueue(e, q) {
  const [, figure, box] = e.children;
  e.dataset.unknown = q.unknown ? 'yes' : 'no';
  figure.replaceChildren(...figures(q));
  const n = q.series.at.length;
  box.setAttribute('aria-label', n < 2 ? `${q.name}: too few readings for a chart` :
    `${q.name}: jobs waiting and age of the oldest over ${span(q.series.at[n - 1] - q.series.at[0])}; at most ${number(Math.max(0, ...q.series.depth))} waiting, the oldest ${span(Math.max(0, ...q.series.age))}`);
  draw(e, box, q.series);
}

function figures(q) {
  if (q.unknown) return [el('strong', { text: 'unknown' }), `: ${q.unknown}`];
  const age = q.depth === 0 ? '' : q.no_age ? ' their age is unknown,' : ` the oldest for ${span(q.oldest_seconds)},`;
  return [el('strong', { text: number(q.depth) }), ` waiting,${age} ${number(q.running)} running`];
}

function draw(e, box, s) {
  const data = [s.at, s.depth, s.age];
  let chart = charts.get(e);
  if (s.at.length < 2) {
    chart?.destroy();
    charts.delete(e);
    setText(box, 'The chart begins with the second reading.');
    return;
  }
  if (!chart) {
    box.replaceChildren();
    chart = new uPlot(options(box), data, box);
    charts.set(e, chart);
    new ResizeObserver(() => chart.setSize({ width: box.clientWidth, height: 140 })).observe(box);
  } else chart.setData(data);
}

function options(box) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const axis = (more) => ({ stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 }, ticks: { stroke: colour('--line'), width: 1 }, font: '11px system-ui', size: 44, ...more });
  return {
    width: box.clientWidth || 300, height: 140, legend: { show: false }, cursor: { show: false }, padding: [8, 0, 0, 0],
    scales: { x: { time: true }, jobs: { range: (u, min, max) => [0, Math.max(4, max)] }, age: { range: (u, min, max) => [0, Math.max(10, max)] } },
    axes: [
      axis({ size: 26, space: 70, grid: { show: false }, values: (u, splits, i, space, step) => splits.map((t) => new Date(t * 1000).toISOString().slice(11, step < 60 ? 19 : 16)) }),
      axis({ scale: 'jobs', space: 36, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 1e7], values: (u, splits) => splits.map(brief) }),
      axis({ scale: 'age', side: 1, space: 36, grid: { show: false }, incrs: [5, 10, 15, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21600, 86400, 604800], values: (u, splits) => splits.map(briefSpan) }),
    ],
    series: [{},
      { scale: 'jobs', stroke: colour('--depth'), fill: colour('--depth-fill'), width: 2, points: { show: false } },
      { scale: 'age', stroke: colour('--age'), width: 1.5, dash: [5, 3], points: { show: false } }],
  };
}

const brief = (n) => (n >= 1e6 ? `${n / 1e6}M` : n >= 1e3 ? `${n / 1e3}k` : `${n}`);

const briefSpan = (s) => (s === 0 ? '0' : s < 120 ? `${s} s` : s < 7200 ? `${+(s / 60).toFixed(1)} m` : s < 172800 ? `${+(s / 3600).toFixed(1)} h` : `${+(s / 86400).toFixed(1)} d`);
