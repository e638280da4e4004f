const whole = new Intl.NumberFormat("en");
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const clockTime = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });
const dateTime = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

export const count = (value) => whole.format(value);
export const plural = (value, noun) => `${count(value)} ${noun}${value === 1 ? "" : "s"}`;
const short = (value) => (value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(3))));

export function bytes(value) {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${short(value)} ${UNITS[unit]}`;
}

const isBytes = (name) => /memory|storage|hugepages/.test(name);

export function amount(name, value) {
  if (name === "cpu") return short(value / 1000);
  return isBytes(name) ? bytes(value) : count(value);
}

export const resourceName = (name) => ({ cpu: "CPU cores", memory: "Memory" })[name] ?? name;
export const percent = (share) => `${Math.round(100 * share)} %`;
export const rate = (value) => (value === 0 ? "0" : value < 0.01 ? "< 0.01" : short(value));

export function duration(milliseconds) {
  const seconds = Math.max(0, milliseconds / 1000);
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.floor(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export const clock = (text) => clockTime.format(new Date(text));
export const moment = (text) => dateTime.format(new Date(text));

// Of today the time is enough.
export function when(text) {
  const date = new Date(text);
  return date.toDateString() === new Date().toDateString() ? clockTime.format(date) : dateTime.format(date);
}

// The share of the resource that is used most, or of the one that is named.
export function load(machine, resource) {
  const names = resource ? [resource] : Object.keys(machine.capacity);
  return names.reduce((most, name) => {
    const capacity = machine.capacity[name] ?? 0;
    return capacity ? Math.max(most, (machine.used[name] ?? 0) / capacity) : most;
  }, 0);
}
