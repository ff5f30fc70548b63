// What the page asks of the server, and what the server sends it.
import { toast } from "./dom.js";

export const state = { csrf: "", name: "", role: "", work: false, servers: false, token: false, pending: [], tools: [], last: 0 };
const listeners = { events: [], inbox: [], reset: [], live: [], login: [] };

export function on(kind, listener) {
  listeners[kind].push(listener);
  return () => { listeners[kind] = listeners[kind].filter((one) => one !== listener); };
}

function publish(kind, data) {
  for (const listener of [...listeners[kind]]) listener(data);
}

/** Say that requests were answered, before the server says it to all. */
export function answered(ids) {
  const gone = new Set(ids);
  state.pending = state.pending.filter((id) => !gone.has(id));
  publish("inbox", state.pending);
}

export class ServerError extends Error {
  constructor(status, data) {
    super(data.error || `The server answered ${status}.`);
    this.status = status;
    this.code = data.code;
    this.field = data.field;
    this.problems = data.problems || [];
  }
}

async function contentOf(response) {
  const data = await response.json().catch(() => ({}));
  if (response.status === 401 && ["token", "login", "either"].includes(data.code)) publish("login", data.code);
  if (!response.ok) throw new ServerError(response.status, data);
  return data;
}

async function fetched(path, options) {
  try { return await fetch(path, options); } catch { throw new ServerError(0, { error: "The server cannot be reached." }); }
}

/** Get JSON: `get("api/activities", {text: "oslo"})`. */
export async function get(path, asked = {}) {
  const given = Object.entries(asked).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given.flatMap(([name, value]) =>
    Array.isArray(value) ? value.map((one) => [name, String(one)]) : [[name, String(value)]]));
  return contentOf(await fetched(given.length ? `${path}?${query}` : path));
}

/** Get the whole of a value that was cut. */
export async function getWhole(at) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(at)) for (const one of [value].flat()) query.append(name, one);
  const response = await fetched(`api/value?${query}`);
  if (!response.ok) { toast("It cannot be read.", true); throw new ServerError(response.status, {}); }
  return response.text();
}

/** Post JSON; once more with a new token where the server was restarted. */
export async function post(path, body) {
  const send = async () => contentOf(await fetched(path, {
    method: "POST",
    headers: { "content-type": "application/json", "x-toolcrib-csrf": state.csrf },
    body: JSON.stringify(body),
  }));
  try {
    return await send();
  } catch (error) {
    if (error.code !== "csrf") throw error;
    await refresh();
    return send();
  }
}

/** The questions of one view to the server: an answer is shown unless a later one was, or something else is asked for. */
export class Newest {
  constructor() { Object.assign(this, { asked: 0, shown: 0, about: undefined }); }

  /** Begin a question, with what it is about; returns a function that tells whether its answer is to be shown. */
  ask(about = "") {
    const number = ++this.asked;
    this.about = about;
    return () => {
      if (number < this.shown || about !== this.about) return false;
      this.shown = number;
      return true;
    };
  }
}

export async function refresh() {
  Object.assign(state, await get("api/state"));
  return state;
}

let source = null;
let seen = null;

/** Listen to what happens; goes on by itself after the server was away. */
export function listen() {
  source?.close();
  const after = seen ?? state.last;
  source = new EventSource(`api/stream?after=${after}`);
  const publisher = (kind) => (message) => {
    const data = JSON.parse(message.data);
    if (data.last !== undefined) seen = data.last;
    publish(kind, data);
  };
  source.addEventListener("events", publisher("events"));
  source.addEventListener("reset", publisher("reset"));
  source.addEventListener("inbox", (message) => {
    state.pending = JSON.parse(message.data).pending;
    publish("inbox", state.pending);
  });
  source.addEventListener("trouble", (message) => publish("live", JSON.parse(message.data).error));
  source.addEventListener("open", () => publish("live", ""));
  source.addEventListener("error", () => {
    publish("live", "reconnecting");
    if (source.readyState !== EventSource.CLOSED) return;  // the browser tries by itself
    source = null;
    setTimeout(() => refresh().then(listen, () => { if (!source) setTimeout(listen, 1000); }), 1000);
  });
}
