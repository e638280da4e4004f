// What has happened, newest first.

import { arrange, byId, element, isSingle, jobLink, machineLink, taskHref } from "./dom.js";
import * as format from "./format.js";
import { taskName, words } from "./summary.js";

const MOST = 60;
const EVERY = 400;

const list = byId("events");
const pause = byId("pause");
let kept = [];
let timer = 0;

function described(event) {
  switch (event.what) {
    case "task": return [
      element("a", { href: taskHref(event.job, event.index) }, taskName(event.job, event.index)), ` ${event.state}`,
      ...(event.machine ? [" on ", machineLink(event.machine)] : []),
      ...(event.exit_status ? [`, exit status ${event.exit_status}`] : []),
      ...(event.reason ? [`: ${event.reason}`] : [])];
    case "job": return isSingle(event)
      ? [element("a", { href: taskHref(event.job, 0) }, taskName(event.job, 0)), ` ${event.state}`]
      : ["job ", jobLink({ ...event, id: event.job }), ` ${event.state}`];
    case "machine": return [`${words.machine} `, machineLink(event.machine), ` ${event.change}`];
    default: return ["the server started, or its schedulers changed"];
  }
}

const item = (event) => element("li", { "data-state": event.state ?? event.what },
  element("time", { datetime: event.at, title: format.moment(event.at) }, format.clock(event.at)),
  element("span", {}, ...described(event)));

function draw() {
  timer = 0;
  if (pause.getAttribute("aria-pressed") === "true") return;
  for (const each of kept) each.shown ??= item(each.event);
  arrange(list, kept.map((each) => each.shown));
  byId("events-empty").hidden = kept.length > 0;
}

export function addEvents(events) {
  // What happens to a job of one task is said of the task; that it waits is said of the job alone.
  events = events.filter((event) => event.what !== "job" || event.state === "pending" || !isSingle(event));
  if (!events.length) return;
  kept = [...events.slice(-MOST).reverse().map((event) => ({ event })), ...kept].slice(0, MOST);
  timer ||= setTimeout(draw, EVERY);
}

export function clearEvents() {
  kept = [];
  draw();
}

pause.addEventListener("click", () => {
  const isPaused = pause.getAttribute("aria-pressed") !== "true";
  pause.setAttribute("aria-pressed", String(isPaused));
  pause.textContent = isPaused ? "Go on" : "Pause";
  draw();
});
