// The machines as a heat map.

import { ask } from "./api.js";
import { byId, element, Keyed, machineHref, setText } from "./dom.js";
import * as format from "./format.js";
import { words } from "./summary.js";

const PAGE = 1000;
const MOST = 5000;
// Up to so many, a cell has room for the machine's name; up to so many, for its share.
const NAMED = 60;
const NUMBERED = 400;

const map = byId("heat");
const chooser = byId("heat-by");
const readout = byId("readout");
const hint = readout.textContent;
let machines = new Map();
let isMore = false;

const cells = new Keyed(
  map,
  (machine) => element("a", { class: "cell", href: machineHref(machine.name), tabindex: "-1", "data-machine": machine.name },
    element("span", { class: "label" }, machine.name), element("span", { class: "share" })),
  (cell, machine) => {
    const share = format.load(machine, chooser.value);
    cell.style.setProperty("--use", Math.min(1, share));
    cell.classList.toggle("warm", share > 0.48);
    cell.classList.toggle("hot", share > 0.62);
    cell.classList.toggle("draining", machine.draining);
    setText(cell.children[1], format.percent(share));
    const text = described(machine);
    if (cell.getAttribute("aria-label") !== text) cell.setAttribute("aria-label", text);
  },
);

function described(machine) {
  const use = Object.entries(machine.capacity).map(([name, capacity]) =>
    `${format.resourceName(name)} ${format.amount(name, machine.used[name] ?? 0)} of ${format.amount(name, capacity)}`);
  const queued = machine.queued ? [`${format.count(machine.queued)} queued`] : [];
  const state = machine.draining ? [`takes no new ${words.task}s`] : [];
  return `${machine.name}: ${[...use, `${format.count(machine.running)} running`, ...queued, ...state].join(", ")}`;
}

export async function refreshMachines() {
  const found = [];
  let after = null;
  do {
    const page = await ask("v1/machines", { limit: PAGE, after });
    found.push(...page.items);
    after = page.next;
  } while (after !== null && found.length < MOST);
  isMore = after !== null;
  machines = new Map(found.map((machine) => [machine.name, machine]));
  chooseFrom([...new Set(found.flatMap((machine) => Object.keys(machine.capacity)))]);
  draw();
}

function chooseFrom(names) {
  const known = [...chooser.options].slice(1).map((option) => option.value);
  if (chooser.options.length && names.join() === known.join()) return;
  const chosen = chooser.value;
  chooser.replaceChildren(
    element("option", { value: "" }, "what is used most"),
    ...names.map((name) => element("option", { value: name }, format.resourceName(name))),
  );
  chooser.value = names.includes(chosen) ? chosen : "";
}

function draw() {
  const size = machines.size <= NAMED ? "named" : machines.size <= NUMBERED ? "numbered" : "small";
  map.dataset.size = size;
  cells.show(machines.values(), (machine) => machine.name);
  if (!map.querySelector('[tabindex="0"]')) map.firstElementChild?.setAttribute("tabindex", "0");
  tell(document.activeElement?.dataset?.machine);
}

function tell(name) {
  const machine = machines.get(name);
  const rest = isMore ? ` Only the first ${format.count(machines.size)} are shown.` : "";
  setText(readout, machine ? described(machine) : hint.replace("a machine", `a ${words.machine}`) + rest);
}

function focus(cell) {
  map.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
  cell.setAttribute("tabindex", "0");
  cell.focus();
}

// The cell in the row above or below that is nearest.
function vertical(from, direction) {
  const here = from.getBoundingClientRect();
  let best = null;
  for (let cell = from; cell; cell = direction > 0 ? cell.nextElementSibling : cell.previousElementSibling) {
    const there = cell.getBoundingClientRect();
    if (Math.abs(there.top - here.top) < 1) continue;
    if (best && Math.abs(there.top - best.top) >= 1) break;
    const distance = Math.abs(there.left - here.left);
    if (!best || distance < best.distance) best = { cell, distance, top: there.top };
  }
  return best?.cell;
}

map.addEventListener("keydown", (event) => {
  const from = event.target.closest(".cell");
  const to = {
    ArrowRight: () => from.nextElementSibling,
    ArrowLeft: () => from.previousElementSibling,
    ArrowDown: () => vertical(from, 1),
    ArrowUp: () => vertical(from, -1),
    Home: () => map.firstElementChild,
    End: () => map.lastElementChild,
  }[event.key];
  if (!from || !to) return;
  event.preventDefault();
  const cell = to();
  if (cell) focus(cell);
});
const hovered = (event) => event.target.closest?.(".cell")?.dataset.machine;
map.addEventListener("pointerover", (event) => tell(hovered(event)));
map.addEventListener("pointerleave", () => tell(document.activeElement?.dataset?.machine));
map.addEventListener("focusin", (event) => tell(hovered(event)));
map.addEventListener("focusout", () => tell());
chooser.addEventListener("change", draw);
