// Buttons of a local run. A page without controls has none, and its server nothing that they could call.
import { $, el, keep, setText } from './dom.js';

let perWorker = [];

export function showControls(controls) {
  perWorker = controls.filter((c) => c.per_worker);
  const rest = controls.filter((c) => !c.per_worker);
  $('controls').hidden = rest.length === 0;
  keep($('controls'), rest, (c) => c.id, (c) => makeButton(c, ''), updateButton);
}

// buttonsFor gives a worker's card its buttons, while it lives.
export function buttonsFor(box, worker) {
  const living = !['terminated', 'failed', 'deallocated'].includes(worker.state);
  keep(box, living ? perWorker : [], (c) => c.id, (c) => makeButton(c, worker.id), updateButton);
}

function makeButton(c, worker) {
  const label = worker ? `${c.label}: worker ${worker}` : undefined;
  return el('button', { type: 'button', title: c.help, 'aria-label': label, on: { click: (e) => press(e.currentTarget, c, worker) } });
}

function updateButton(e, c) {
  setText(e, c.label);
  if (c.on === undefined) e.removeAttribute('aria-pressed');
  else e.setAttribute('aria-pressed', c.on);
}

async function press(button, c, worker) {
  if (button.ariaBusy === 'true') return;
  button.ariaBusy = 'true';
  try {
    const r = await fetch(`api/control/${encodeURIComponent(c.id)}`, {
      method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ worker }),
    });
    const answer = await r.json().catch(() => ({ error: r.statusText }));
    say(r.ok ? answer.said : `${c.label}: ${answer.error}`, r.ok);
  } catch {
    say(`${c.label}: the page's server does not answer.`, false);
  } finally {
    button.ariaBusy = null;
  }
}

function say(text, ok) {
  $('said').dataset.level = ok ? 'fine' : 'over';
  setText($('said'), text);
}
