// The cluster in numbers, and its schedulers.

import { byId, element, Keyed, setText } from "./dom.js";
import * as format from "./format.js";

// Seconds over which rates are measured.
const WINDOW = 15;

export const WORDS = {
  local: { machine: "machine", task: "task", jobs: "Jobs", tasks: "Open tasks" },
  federation: { machine: "machine", task: "task", jobs: "Jobs", tasks: "Open tasks" },
  kubernetes: { machine: "node", task: "pod", jobs: "Pods", tasks: "Open pods" },
};

let samples = [];
let started = "";

export const words = { ...WORDS.local };

// A pod is a job of one task, called NAMESPACE.NAME.
export function taskName(job, index) {
  return words.task === "pod" && Number(index) === 0 ? job.replace(".", "/") : `${job}/${index}`;
}

function rates(summary) {
  if (summary.started !== started) {
    started = summary.started;
    samples = [];
  }
  const conflicts = summary.schedulers.reduce((sum, each) => sum + each.conflicts, 0);
  const now = { at: Date.parse(summary.at) / 1000, placed: summary.placed, conflicts };
  samples.push(now);
  while (samples.length > 2 && samples[1].at < now.at - WINDOW) samples.shift();
  const first = samples[0];
  const seconds = Math.max(1, now.at - first.at);
  return {
    placed: (now.placed - first.placed) / seconds,
    conflicts: (now.conflicts - first.conflicts) / seconds,
    allConflicts: conflicts,
  };
}

const tiles = new Keyed(
  byId("tiles"),
  (tile) => element("div", { class: "tile", "data-tile": tile.key },
    element("p", { class: "name" }), element("p", { class: "value" }), element("p", { class: "quiet" })),
  (made, tile) => {
    setText(made.children[0], tile.name);
    setText(made.children[1], tile.value);
    setText(made.children[2], tile.note);
    made.classList.toggle("bad", Boolean(tile.isBad));
  },
);

const bars = new Keyed(
  byId("use"),
  (row) => element("div", { class: "use" },
    element("p", {}, element("span", { class: "name" }), element("span", { class: "number" })),
    element("div", { class: "track", role: "img", "aria-label": row.name }, element("div", { class: "fill" }))),
  (made, row) => {
    setText(made.querySelector(".name"), row.name);
    setText(made.querySelector(".number"), `${row.used} of ${row.capacity} · ${format.percent(row.share)}`);
    made.querySelector(".track").setAttribute("aria-label", `${row.name}: ${format.percent(row.share)}`);
    made.querySelector(".fill").style.setProperty("--use", Math.min(1, row.share));
  },
);

const schedulers = new Keyed(
  byId("schedulers").tBodies[0],
  () => element("tr", {}, element("th", { scope: "row" }), element("td"),
    ...[0, 1, 2].map(() => element("td", { class: "number" }))),
  (made, each) => {
    const [name, engine, jobs, busy, conflicts] = made.children;
    setText(name, each.name);
    setText(engine, each.engine);
    setText(jobs, format.count(each.jobs));
    setText(busy, each.is_alive ? format.percent(each.busyness) : "down");
    setText(conflicts, each.transactions ? `${format.count(each.conflicts)} of ${format.count(each.transactions)}` : "none");
  },
);

export function showSummary(summary) {
  Object.assign(words, WORDS[summary.world]);
  const { tasks } = summary;
  const speed = rates(summary);
  const closed = summary.machines - summary.accepting;
  const waiting = tasks.pending + tasks.queued;
  const lost = tasks.failed + tasks.abandoned;
  tiles.show([
    { key: "machines", name: `${words.machine[0].toUpperCase()}${words.machine.slice(1)}s`,
      value: format.count(summary.machines),
      note: closed ? `${format.count(closed)} take${closed === 1 ? "s" : ""} no new ${words.task}s` : `all take ${words.task}s` },
    { key: "running", name: "Running", value: format.count(tasks.running), note: `${words.task}s` },
    { key: "waiting", name: "Waiting", value: format.count(waiting),
      note: tasks.queued ? `${format.count(tasks.queued)} of them in queues of ${words.machine}s` : `${words.task}s` },
    { key: "failed", name: "Failed", value: format.count(lost), isBad: lost > 0,
      note: `${format.count(tasks.finished)} finished since the start` },
    { key: "decisions", name: "Decisions a second", value: format.rate(speed.placed),
      note: `${format.count(summary.placed)} ${words.task}s placed since the start` },
    { key: "conflicts", name: "Conflicts a second", value: format.rate(speed.conflicts),
      note: `${format.count(speed.allConflicts)} since the start` },
  ], (tile) => tile.key);
  bars.show(Object.entries(summary.capacity).filter(([, capacity]) => capacity > 0).map(([name, capacity]) => {
    const used = summary.used[name] ?? 0;
    return { name: format.resourceName(name), used: format.amount(name, used),
      capacity: format.amount(name, capacity), share: used / capacity };
  }), (row) => row.name);
  schedulers.show(summary.schedulers, (each) => each.name);
  setText(byId("cluster"), summary.cluster);
  document.title = `${summary.cluster} · Argosy`;
  const up = Date.parse(summary.at) - Date.parse(summary.started);
  setText(byId("server"), `${location.host} · up ${format.duration(up)} · version ${summary.version}`);
  setText(byId("machines-title"), `${words.machine[0].toUpperCase()}${words.machine.slice(1)}s`);
  setText(byId("jobs-title"), words.jobs);
  setText(byId("view-jobs"), words.jobs);
  setText(byId("view-tasks"), words.tasks);
  setText(byId("skip"), `Skip to the ${words.jobs.toLowerCase()}`);
}
