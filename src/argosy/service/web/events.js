// What has happened, newest first.

import { arrange, byId, element, machineLink, taskHref } from "./dom.js";
import * as format from "./format.js";

const MOST = 60;
const EVERY = 400;

const list = byId("events");
const pause = byId("pause");
let kept = [];
let timer = 0;

function described(event) {
  switch (event.what) {
    case "task": return [
      element("a", { href: taskHref(event.job, event.index) }, `${event.job}/${event.index}`), ` ${event.state}`,
      ...(event.machine ? [" on ", machineLink(event.machine)] : []),
      ...(event.exit_status ? [`, exit status ${event.exit_status}`] : []),
      ...(event.reason ? [`: ${event.reason}`] : [])];
    case "job": return [
      "job ", element("a", { href: `#/job/${encodeURIComponent(event.job)}` }, event.job), ` ${event.state}`];
    case "machine": return ["machine ", machineLink(event.machine), ` ${event.change}`];
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
