// The table of jobs, or of tasks that are not over, page by page: the server sorts and filters.

import { ask } from "./api.js";
import { byId, element, isSingle, jobLink, Keyed, machineLink, setText, stateBadge, taskHref } from "./dom.js";
import * as format from "./format.js";
import { taskName, words } from "./summary.js";

const SIZE = 25;
const TYPING = 250;
const JOB_STATES = [["", "all states"], ["open", "not over"], ["over", "over"], ["pending", "pending"],
  ["running", "running"], ["finished", "finished"], ["failed", "failed"], ["cancelled", "cancelled"],
  ["abandoned", "abandoned"]];
const TASK_STATES = [["", "all states"], ["running", "running"], ["queued", "queued"], ["pending", "pending"]];

const table = byId("jobs");
const [head, body] = [table.tHead, table.tBodies[0]];
const [match, state] = [byId("match"), byId("state")];
// Where each page before this one began.
let begins = [];
let after = null;
let next = null;
let asked = 0;

const view = () => document.querySelector('input[name="view"]:checked').value;

const COLUMNS = {
  jobs: [["Name", ""], ["State", ""], ["Tasks", "spread"], ["Scheduler", "spare"], ["Owner", "spare owner"], ["Submitted", "number spare"]],
  tasks: [["Name", ""], ["State", ""], ["On", ""], ["Failures", "number spare"], ["Started", "number"]],
};

const rows = new Keyed(body, () => element("tr"), (row, item) => {
  const key = JSON.stringify(item);
  if (row.dataset.shown === key) return;
  row.dataset.shown = key;
  const focused = row.contains(document.activeElement);
  row.replaceChildren(...(item.tasks ? jobCells(item) : taskCells(item)));
  if (focused) row.querySelector("a")?.focus({ preventScroll: true });
});

function jobCells(job) {
  const name = job.name && job.name !== job.id ? job.name : "";
  const isPod = words.task === "pod";
  const title = isPod && name ? [jobLink(job, name)] : [jobLink(job), name && element("span", { class: "quiet" }, ` ${name}`)];
  return [
    element("th", { scope: "row" }, ...title),
    element("td", {}, stateBadge(job.state)),
    element("td", { class: "spread" }, taskBar(job.tasks)),
    element("td", { class: "spare" }, job.scheduler),
    element("td", { class: "spare owner" }, job.owner),
    element("td", { class: "number spare", title: format.moment(job.submitted) }, format.when(job.submitted)),
  ];
}

function taskBar(tasks) {
  const parts = Object.entries(tasks).filter(([, number]) => number > 0);
  const text = parts.map(([name, number]) => `${format.count(number)} ${name}`).join(", ");
  const pieces = parts.map(([name, number]) => {
    const piece = element("span", { "data-state": name });
    piece.style.flexGrow = number;
    return piece;
  });
  return element("div", { class: "tasks" }, element("div", { class: "pieces", "aria-hidden": "true" }, ...pieces), text);
}

function taskCells(task) {
  return [
    element("th", { scope: "row" }, element("a", { href: taskHref(task.job, task.index) }, taskName(task.job, task.index))),
    element("td", {}, stateBadge(task.state)),
    element("td", {}, task.machine ? machineLink(task.machine) : ""),
    element("td", { class: "number spare" }, task.failures ? format.count(task.failures) : ""),
    element("td", { class: "number" }, task.started ? format.when(task.started) : ""),
  ];
}

function heads(chosen) {
  if (head.dataset.view === chosen) return;
  head.dataset.view = chosen;
  head.replaceChildren(element("tr", {}, ...COLUMNS[chosen].map(([name, kind]) =>
    element("th", { scope: "col", class: kind }, name))));
  state.replaceChildren(...(chosen === "jobs" ? JOB_STATES : TASK_STATES).map(([value, label]) =>
    element("option", { value }, label)));
  byId("match-label").hidden = chosen !== "jobs";
}

export async function refreshJobs() {
  const chosen = view();
  heads(chosen);
  const mine = ++asked;
  const page = chosen === "jobs"
    ? await ask("v1/jobs", { limit: SIZE, after, match: match.value.trim(), ...jobState() })
    : await ask("v1/tasks", { limit: SIZE, after, state: state.value });
  // Somebody has typed on: a later answer counts.
  if (mine !== asked) return;
  next = page.next;
  rows.show(page.items, (item) => (chosen === "jobs" ? `job ${item.id}` : `task ${item.job}/${item.index}`));
  // The namespace is part of a pod's name, and a pod is a single task.
  const isPods = words.task === "pod";
  table.classList.toggle("ownerless", isPods || !page.items.some((item) => item.owner));
  table.classList.toggle("single", isPods && chosen === "jobs" && page.items.every(isSingle));
  const isEmpty = page.items.length === 0;
  table.hidden = isEmpty;
  byId("jobs-empty").hidden = !isEmpty;
  setText(byId("jobs-empty"), empty(chosen));
  byId("newer").disabled = begins.length === 0;
  byId("older").disabled = next === null;
  setText(byId("page-number"), `Page ${begins.length + 1}`);
  byId("newer").parentElement.hidden = begins.length === 0 && next === null;
}

function jobState() {
  if (state.value === "open") return { open: true };
  return state.value === "over" ? { open: false } : { state: state.value };
}

function empty(chosen) {
  if (begins.length) return "Nothing on this page any more.";
  if (match.value.trim() || state.value) return "Nothing matches.";
  if (chosen === "tasks") return "Nothing runs or waits.";
  return words.task === "pod" ? "No pods yet." : "No jobs yet. Submit one: argosy submit -- echo hello";
}

export function setUpJobs(changed) {
  let timer = 0;
  const restart = () => {
    begins = [];
    after = null;
    changed();
  };
  match.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(restart, TYPING);
  });
  state.addEventListener("change", restart);
  byId("view").addEventListener("change", () => {
    heads(view());
    restart();
  });
  byId("older").addEventListener("click", () => {
    begins.push(after);
    after = next;
    changed();
  });
  byId("newer").addEventListener("click", () => {
    after = begins.pop() ?? null;
    changed();
  });
  heads(view());
}
