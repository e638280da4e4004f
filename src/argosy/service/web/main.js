// Keeps the page in step with the server: a stream of events says what has changed, and what is shown
// is asked for again, seldom enough that a busy cluster is not kept from its work.

import { ask, follow, forgetToken, hasToken, Refused, setToken, Unreachable } from "./api.js";
import { concerns, refreshDetail, setUpDetail } from "./detail.js";
import { byId, setText } from "./dom.js";
import { addEvents, clearEvents } from "./events.js";
import * as format from "./format.js";
import { refreshJobs, setUpJobs } from "./jobs.js";
import { refreshMachines } from "./machines.js";
import { showSummary } from "./summary.js";

const SHORTEST = 700;
// At most a tenth of the time is spent on answers to this page.
const SHARE = 10;
const POLL = 5_000;
const EVENTS = 60;
const LONGEST_PAUSE = 10_000;

const parts = {
  summary: async () => {
    const summary = await ask("v1/summary");
    showSummary(summary);
    health = summary.status === "ok" ? "" : `The cluster is ${summary.status}${summary.detail ? `: ${summary.detail}` : ""}`;
  },
  machines: refreshMachines,
  jobs: refreshJobs,
  detail: refreshDetail,
};
const stale = new Set(Object.keys(parts));
let health = "";
let isRefreshing = false;
let earliest = 0;
let timer = 0;
let position = null;
let lostSince = null;
let trouble = { stream: "", answers: "" };
let wake = () => {};
let stream = new AbortController();

function mark(...names) {
  names.forEach((name) => stale.add(name));
  if (!timer && !isRefreshing && !document.hidden) {
    timer = setTimeout(refresh, Math.max(0, earliest - performance.now()));
  }
}

// What a user asks for comes at once.
function hurry(...names) {
  earliest = 0;
  clearTimeout(timer);
  timer = 0;
  mark(...names);
}

async function refresh() {
  timer = 0;
  isRefreshing = true;
  const began = performance.now();
  const names = [...stale];
  stale.clear();
  try {
    for (const name of names) await parts[name]();
    report({ answers: "" });
  } catch (error) {
    names.forEach((name) => stale.add(name));
    await failed(error, "answers");
  }
  const spent = performance.now() - began;
  earliest = performance.now() + Math.max(trouble.answers ? 2_000 : SHORTEST, SHARE * spent);
  isRefreshing = false;
  if (stale.size) mark();
}

async function failed(error, where) {
  if (error instanceof Refused && error.status === 401) await unlocked(error);
  else if (error instanceof Refused) report({ [where]: error.message });
  else if (error instanceof Unreachable) report({ [where]: "gone" });
  else {
    report({ [where]: `This page has a mistake: ${error.message}` });
    console.error(error);
  }
}

function report(changes) {
  trouble = { ...trouble, ...changes };
  const problem = trouble.stream || trouble.answers;
  lostSince = problem ? lostSince ?? new Date() : null;
  const text = problem === "gone"
    ? `The server at ${location.host} does not answer. What you see is from ${format.clock(lostSince)}; trying again.`
    : problem || health;
  setText(byId("banner-text"), text);
  byId("banner").hidden = !text;
  byId("banner").dataset.kind = problem ? "lost" : "health";
  byId("banner-retry").hidden = !problem;
  const state = problem ? "lost" : position === null ? "connecting" : "live";
  byId("status").dataset.state = state;
  setText(byId("status"), { lost: "Not connected", connecting: "Connecting", live: "Live" }[state]);
  document.body.classList.toggle("stale", Boolean(problem));
}

let unlocking = null;

// Asks for a token, once for all who wait for it.
function unlocked(error) {
  unlocking ??= new Promise((resolve) => {
    const dialog = byId("token");
    const problem = error.message.includes("expired") ? "That token has expired." : "That is the wrong token.";
    setText(byId("token-problem"), hasToken() ? problem : "");
    forgetToken();
    byId("token-field").value = "";
    // Nothing can be done without it.
    dialog.oncancel = (event) => event.preventDefault();
    byId("token-form").onsubmit = (event) => {
      event.preventDefault();
      setToken(byId("token-field").value.trim());
      byId("token-field").value = "";
      unlocking = null;
      dialog.close();
      resolve();
    };
    byId("detail").close();
    dialog.showModal();
    byId("token-field").focus();
  });
  return unlocking;
}

function happened(batch) {
  const events = [];
  for (const { id, data } of batch) {
    if (id !== undefined) position = id;
    if (data !== undefined) events.push(data);
  }
  if (!events.length) return;
  addEvents(events);
  const kinds = new Set(events.map((event) => event.what));
  if (kinds.has("task") || kinds.has("job")) mark("summary", "machines", "jobs");
  if (kinds.has("machine")) mark("summary", "machines");
  if (kinds.has("fleet")) mark("summary");
  if (events.some(concerns)) mark("detail");
}

async function watch() {
  let pause = 500;
  for (;;) {
    if (document.hidden) await new Promise((resolve) => { wake = resolve; });
    stream = new AbortController();
    let isOpen = false;
    try {
      for await (const batch of follow(position === null ? { last: EVENTS } : { after: position }, stream.signal)) {
        happened(batch);
        if (!isOpen) {
          isOpen = true;
          pause = 500;
          report({ stream: "" });
          mark(...Object.keys(parts));
        }
      }
      report({ stream: "gone" });
    } catch (error) {
      if (document.hidden) continue;
      if (error instanceof Refused && error.status === 401) {
        await unlocked(error);
        continue;
      }
      if (error instanceof Refused && error.status === 400 && position !== null) {
        // Another cluster, or one that has forgotten what followed.
        position = null;
        clearEvents();
        continue;
      }
      await failed(error, "stream");
    }
    await new Promise((resolve) => {
      wake = resolve;
      setTimeout(resolve, pause);
    });
    pause = Math.min(LONGEST_PAUSE, pause * 2);
  }
}

// A page that nobody looks at asks for nothing.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) stream.abort();
  else {
    wake();
    mark();
  }
});
byId("banner-retry").addEventListener("click", () => {
  wake();
  hurry(...Object.keys(parts));
});
// The jump must not change the address, which says what is shown beside the page.
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("jobs-title").focus();
});
setInterval(() => mark("summary", "detail"), POLL);
setInterval(() => mark("machines", "jobs"), 3 * POLL);
setUpJobs(() => hurry("jobs"));
setUpDetail(() => hurry("detail"));
mark();
watch();
