// Asks the server. Paths are relative, so that the page works behind a proxy that adds a prefix.

const KEY = "argosy-token";
const PATIENCE = 20_000;
// The server sends a sign of life every 15 s.
const SILENCE = 40_000;

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `the server answers with status ${status}`);
    this.status = status;
  }
}

export class Unreachable extends Error {}

export const hasToken = () => sessionStorage.getItem(KEY) !== null;
export const setToken = (token) => sessionStorage.setItem(KEY, token);
export const forgetToken = () => sessionStorage.removeItem(KEY);

async function request(path, parameters, signal) {
  const url = new URL(path, document.baseURI);
  url.hash = "";
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null && value !== "") url.searchParams.set(name, value);
  }
  const token = sessionStorage.getItem(KEY);
  let response;
  try {
    response = await fetch(url, {
      signal,
      cache: "no-store",
      credentials: "omit",
      headers: token === null ? {} : { Authorization: `Bearer ${token}` },
    });
  } catch (error) {
    throw new Unreachable(error.message);
  }
  if (response.ok) return response;
  let problem = {};
  try {
    problem = await response.json();
  } catch {
    // Not an answer of Argosy's: the status has to do.
  }
  throw new Refused(response.status, problem);
}

export async function ask(path, parameters = {}) {
  const response = await request(path, parameters, AbortSignal.timeout(PATIENCE));
  try {
    return await response.json();
  } catch (error) {
    throw new Unreachable(error.message);
  }
}

export const jobPath = (job) => `v1/jobs/${encodeURIComponent(job)}`;
export const taskPath = (job, index) => `${jobPath(job)}/tasks/${index}`;

// Server-sent events. EventSource cannot send a token, so the stream is read by hand. Yields lists of
// what arrived together: {id, data}, where data is missing if there is only a new position.
export async function* follow(parameters, outer) {
  const control = new AbortController();
  const stop = () => control.abort();
  outer.addEventListener("abort", stop);
  if (outer.aborted) stop();
  let timer = setTimeout(stop, SILENCE);
  try {
    const response = await request("v1/events", parameters, control.signal);
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(timer);
      timer = setTimeout(stop, SILENCE);
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      yield parts.map(parsed);
    }
  } catch (error) {
    if (error instanceof Refused) throw error;
    throw new Unreachable(error.message);
  } finally {
    clearTimeout(timer);
    outer.removeEventListener("abort", stop);
    stop();
  }
}

function parsed(part) {
  const found = {};
  for (const line of part.split("\n")) {
    if (line.startsWith("id: ")) found.id = line.slice(4);
    else if (line.startsWith("data: ")) found.data = JSON.parse(line.slice(6));
  }
  return found;
}
