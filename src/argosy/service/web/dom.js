// Elements are made of text, never of markup: whatever a job is called, it is shown and not run.

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "onclick") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

export function setText(target, text) {
  if (target.textContent !== text) target.textContent = text;
}

// Puts the children in order, and leaves them alone if they are: what has the focus keeps it.
export function arrange(parent, children) {
  const now = parent.children;
  if (now.length === children.length && children.every((child, at) => child === now[at])) return;
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  parent.replaceChildren(...children);
  if (focused?.isConnected) focused.focus({ preventScroll: true });
}

// Children by key; those whose key stays are updated, not made anew.
export class Keyed {
  constructor(parent, make, update) {
    this.parent = parent;
    this.make = make;
    this.update = update;
    this.known = new Map();
  }

  show(items, keyOf) {
    const next = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const child = this.known.get(key) ?? this.make(item);
      this.update(child, item);
      next.set(key, child);
    }
    this.known = next;
    arrange(this.parent, [...next.values()]);
  }
}

export const stateBadge = (state) => element("span", { class: "badge", "data-state": state }, state);

export const isSingle = (job) => Object.values(job.tasks).reduce((sum, count) => sum + count, 0) === 1;

export function jobLink(job, label) {
  const href = isSingle(job) ? taskHref(job.id, 0) : `#/job/${encodeURIComponent(job.id)}`;
  return element("a", { href }, label ?? job.id);
}

export const taskHref = (job, index) => `#/task/${encodeURIComponent(job)}/${index}`;
export const machineHref = (name) => `#/machine/${encodeURIComponent(name)}`;
export const machineLink = (name) => element("a", { href: machineHref(name) }, name);
