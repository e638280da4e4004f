// A job, a task or a machine, beside the page. The address says which, so that it can be shared.

import { ask, jobPath, Refused, taskPath } from "./api.js";
import { byId, element, isSingle, machineLink, stateBadge, taskHref } from "./dom.js";
import * as format from "./format.js";
import { taskName, words } from "./summary.js";

const SIZE = 50;
const drawer = byId("detail");
const title = byId("detail-title");
const body = byId("detail-body");
let shown = "";
let isOpen = false;
// How many tasks of a list are shown; more on demand.
let most = SIZE;

function route() {
  const [kind, ...parts] = location.hash.replace(/^#\//, "").split("/");
  try {
    const names = parts.map(decodeURIComponent);
    if (kind === "task" && names.length === 2 && /^\d+$/.test(names[1])) return { kind, job: names[0], index: names[1] };
    if (kind === "job" && names.length === 1 && names[0]) return { kind, job: names[0] };
    if (kind === "machine" && names.length === 1 && names[0]) return { kind, machine: names[0] };
  } catch {
    // An address that somebody mistyped shows nothing.
  }
  return null;
}

export function concerns(event) {
  const now = route();
  if (now === null) return false;
  return now.kind === "machine" ? event.machine === now.machine : event.job === now.job;
}

export async function refreshDetail() {
  const now = route();
  if (now === null) return;
  const hash = location.hash;
  let made;
  try {
    made = await { task: task, job: job, machine: machine }[now.kind](now);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 404) throw error;
    made = { key: error.message, title: "Not found", content: () => [element("p", {}, error.message)] };
  }
  if (location.hash !== hash) return;
  show(made);
}

function show(made) {
  const key = JSON.stringify([location.hash, made.key]);
  if (key !== shown) {
    shown = key;
    const focused = body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    title.textContent = made.title;
    body.replaceChildren(...made.content());
    if (focused) [...body.querySelectorAll("a")].find((each) => each.getAttribute("href") === focused)?.focus();
  }
  if (!isOpen) {
    isOpen = true;
    drawer.showModal();
    title.focus();
  }
}

function facts(pairs) {
  const list = element("dl");
  for (const [name, value] of pairs) {
    if (value === "" || value === null || value === undefined) continue;
    list.append(element("dt", {}, name), element("dd", {}, value));
  }
  return list;
}

async function task({ job: id, index }) {
  const path = taskPath(id, index);
  const [found, owner, why, story] = await Promise.all(
    [ask(path), ask(jobPath(id)), ask(`${path}/why`), ask(`${path}/story`)]);
  return {
    key: [found, why.text, story.lines, owner.scheduler],
    title: words.task === "pod" && owner.name ? `Pod ${owner.name}` : `Task ${id}/${index}`,
    content: () => [
      facts([
        ["State", stateBadge(found.state)],
        [words.machine === "node" ? "Node" : "Machine", found.machine && machineLink(found.machine)],
        ["Job", isSingle(owner) ? (words.task === "pod" ? "" : owner.name || "") : element("a", { href: `#/job/${encodeURIComponent(id)}` }, id)],
        ["Scheduler", owner.scheduler],
        ["Submitted", format.moment(owner.submitted)],
        ["Started", found.started && format.moment(found.started)],
        ["Ended", found.ended && format.moment(found.ended)],
        ["Exit status", found.exit_status === null ? "" : String(found.exit_status)],
        ["Failures", found.failures ? format.count(found.failures) : ""],
        ["Request", request(owner.document)],
      ]),
      element("h3", {}, "Why"),
      element("div", { id: "why" }, ...why.text.map((line) => element("p", {}, line))),
      element("h3", {}, "Story"),
      element("ol", { id: "story", class: "story" }, ...story.lines.map((line) => storyLine(line, story.origin))),
    ],
  };
}

function storyLine(line, origin) {
  const at = new Date(Date.parse(origin) + line.at / 1000).toISOString();
  return element("li", {}, element("time", { datetime: at, title: format.moment(at) }, format.clock(at)),
    element("span", {}, line.text));
}

function request(document) {
  const groups = document.groups ?? [document];
  const texts = groups.map((group) => Object.entries(group.request ?? {}).map(([name, value]) =>
    `${format.resourceName(name)} ${format.amount(name, value)}`).join(", "));
  return [...new Set(texts)].join("; ");
}

async function job({ job: id }) {
  const [found, tasks] = await Promise.all([ask(jobPath(id)), listed(`${jobPath(id)}/tasks`)]);
  const counts = Object.entries(found.tasks).filter(([, number]) => number > 0)
    .map(([name, number]) => `${format.count(number)} ${name}`).join(", ");
  return {
    key: [found, tasks],
    title: found.name && found.name !== id ? `Job ${id}, ${found.name}` : `Job ${id}`,
    content: () => [
      facts([
        ["State", stateBadge(found.state)],
        ["Tasks", counts],
        ["Kind", found.kind],
        ["Owner", found.owner],
        ["Precedence", found.precedence ? String(found.precedence) : ""],
        ["Scheduler", found.scheduler],
        ["Submitted", format.moment(found.submitted)],
        ["Ended", found.ended && format.moment(found.ended)],
        ["Exit code", found.exit_code === null ? "" : String(found.exit_code)],
        ["Request", request(found.document)],
        ["Limits", found.isolation],
        ["Notes", found.notes.join(" ")],
      ]),
      element("h3", {}, "Tasks"),
      ...taskList(tasks, (each) => each.machine && [" on ", machineLink(each.machine)]),
    ],
  };
}

async function machine({ machine: name }) {
  const [found, tasks] = await Promise.all(
    [ask(`v1/machines/${encodeURIComponent(name)}`), listed("v1/tasks", { machine: name })]);
  const attributes = Object.entries(found.attributes).map(([key, value]) => `${key} = ${value}`).join(", ");
  const groups = Object.entries(found.joins).map(([key, sets]) => `${key}: ${sets.join(", ")}`).join("; ");
  return {
    key: [found, tasks],
    title: `${words.machine === "node" ? "Node" : "Machine"} ${name}`,
    content: () => [
      facts([
        ["State", found.draining ? `takes no new ${words.task}s` : `takes ${words.task}s`],
        ...Object.entries(found.capacity).map(([key, capacity]) => {
          const used = found.used[key] ?? 0;
          return [format.resourceName(key), `${format.amount(key, used)} of ${format.amount(key, capacity)} (${format.percent(used / capacity)})`];
        }),
        ["Attributes", attributes],
        ["Node groups", groups],
      ]),
      element("h3", {}, `What runs or is queued here (${format.count(found.running + found.queued)})`),
      ...taskList(tasks, (each) => each.started && [` since ${format.when(each.started)}`]),
    ],
  };
}

async function listed(path, parameters = {}) {
  const page = await ask(path, { ...parameters, limit: most });
  return { items: page.items, isMore: page.next !== null };
}

function taskList({ items, isMore }, more) {
  if (!items.length) return [element("p", { class: "quiet" }, "Nothing.")];
  const list = element("ul", { class: "list-of-tasks" }, ...items.map((each) => element("li", {},
    stateBadge(each.state), " ", element("a", { href: taskHref(each.job, each.index) }, taskName(each.job, each.index)),
    ...(more(each) || []))));
  const button = element("button", { type: "button", onclick: () => {
    most = Math.min(1000, most * 4);
    refreshDetail().catch(() => {});
  } }, "More");
  return isMore && most < 1000 ? [list, button]
    : isMore ? [list, element("p", { class: "quiet" }, `Only the first ${format.count(most)} are shown.`)] : [list];
}

function close() {
  if (route() !== null) history.pushState(null, "", location.pathname + location.search);
  shown = "";
}

export function setUpDetail(changed) {
  byId("detail-close").addEventListener("click", () => drawer.close());
  drawer.addEventListener("click", (event) => {
    if (event.target === drawer) drawer.close();
  });
  drawer.addEventListener("close", () => {
    isOpen = false;
    close();
  });
  const moved = () => {
    most = SIZE;
    if (route() === null) drawer.close();
    else changed();
  };
  window.addEventListener("hashchange", moved);
  window.addEventListener("popstate", moved);
}
