// Making and keeping elements. Text is set as text only: names of queues and jobs are other people's input.

export const $ = (id) => document.getElementById(id);

// el makes an element; properties are attributes but for class, text and on.
export function el(tag, properties = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'text') e.textContent = value;
    else if (name === 'class') e.className = value;
    else if (name === 'on') for (const [event, f] of Object.entries(value)) e.addEventListener(event, f);
    else e.setAttribute(name, value === true ? '' : value);
  }
  e.append(...children.filter((c) => c !== undefined && c !== null && c !== ''));
  return e;
}

// setText leaves what is right untouched, so that screen readers hear of changes only.
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

// withCode sets text in which commands stand between backticks.
export function withCode(e, text) {
  if (e.dataset.text === text) return;
  e.dataset.text = text;
  e.replaceChildren(...text.split('`').map((part, i) => (i % 2 ? el('code', { text: part }) : part)));
}

// keep makes a parent's children those of a list, keyed, so that what stays keeps its place, focus and open details.
export function keep(parent, items, key, make, update) {
  const old = new Map([...parent.children].map((c) => [c.dataset.key, c]));
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = key(item);
    let e = old.get(k);
    if (!e) {
      e = make(item);
      e.dataset.key = k;
    }
    old.delete(k);
    if (update) update(e, item);
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
  for (const gone of old.values()) gone.remove();
}
