// Elements are made here and nowhere else: what comes from a tool or a model is only ever text.

/** Return an element; `options` are properties, `on…` listeners, `aria`, `data`; children are elements or text. */
export function h(tag, options = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "aria") for (const [a, v] of Object.entries(value)) element.setAttribute(`aria-${a}`, v);
    else if (key === "data") Object.assign(element.dataset, value);
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const keys = new WeakMap();

/** Fill `slot` with what `build` returns, unless `key` says that it holds that already; return whether it was filled. */
export function fill(slot, key, build) {
  const text = JSON.stringify(key);
  if (keys.get(slot) === text) return false;
  keys.set(slot, text);
  slot.replaceChildren(...[build()].flat().filter(Boolean));
  return true;
}

const WORDS = {
  running: "running", suspended: "suspended", completed: "completed", failed: "failed", rejected: "rejected",
  cancelled: "cancelled", refused: "refused", error: "failed", quiet: "quiet", lost: "lost",
};

/** Return a status as a coloured dot with its word, or with what it says instead; `why` is shown on hovering. */
export function status(word, why = "", says = [word]) {
  const kind = WORDS[word] || "other";
  return h(`span.status.is-${kind}`, why ? { title: why } : {}, says);
}

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
const dated = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false, timeZoneName: "short",
});

/** Return a date and time with its zone. */
export function whole(iso) {
  return dated.format(new Date(iso));
}

/** Return a time of today, or another day's with its date; the title has the zone. */
export function time(iso) {
  const date = new Date(iso);
  const today = date.toDateString() === new Date().toDateString();
  return h("time", { dateTime: iso, title: whole(iso) }, today ? clock.format(date) : whole(iso));
}

/** Return how long ago something was; it is kept up to date by `tick`. */
export function ago(iso, after = "") {
  const element = h("time.ago", { dateTime: iso, title: whole(iso), data: { after } });
  element.textContent = since(iso, after);
  return element;
}

export function tick() {
  for (const element of document.querySelectorAll("time.ago")) {
    const text = since(element.dateTime, element.dataset.after);
    if (element.textContent !== text) element.textContent = text;
  }
}

function since(iso, after) {
  const seconds = Math.max(0, (Date.now() - new Date(iso)) / 1000);
  if (seconds < 5) return after ? "just now" : "now";
  if (seconds < 60) return `${Math.floor(seconds)} s${after}`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min${after}`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h${after}`;
  return `${Math.floor(seconds / 86400)} d${after}`;
}

export function duration(ms) {
  if (ms === null || ms === undefined) return "";
  if (ms < 1) return "<1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60000) return `${(ms / 1000).toFixed(1)} s`;
  return `${Math.floor(ms / 60000)} min ${Math.round((ms % 60000) / 1000)} s`;
}

export function number(n) {
  return n.toLocaleString("en").replaceAll(",", " ");
}

/** Say something at the foot of the page for some seconds. */
export function toast(text, bad = false) {
  const place = document.getElementById("toast");
  const note = h(`p${bad ? ".bad" : ""}`, {}, text);
  place.append(note);
  setTimeout(() => note.remove(), bad ? 9000 : 4000);
}

/** Return the beginning of a text, which says how much is left out. */
export function beginning(text, most) {
  return text.length > most ? `${text.slice(0, most)}… (${number(text.length - most)} more characters)` : text;
}

/** Return a value with its label; one that was cut has a button that gets the rest. */
export function value(shown, fetchWhole) {
  const body = h("div.value");
  const show = (text, isWhole) => {
    body.replaceChildren(shown.rows ? table(shown.rows) : h("pre", { tabIndex: 0, aria: { label: shown.label } }, text));
    if (!isWhole) {
      const left = `Show all ${number(shown.length)} characters`;
      body.append(h("button.quiet", { type: "button", onclick: async () => show(await fetchWhole(shown.at), true) }, left));
    }
  };
  show(shown.text, !shown.cut);
  return h("section.part", {}, shown.label ? h("h3", {}, shown.label) : null, body);
}

/** Return the parts of an object as a table. */
function table(rows) {
  if (!rows.length) return h("p.muted", {}, "none");
  return h("dl.arguments", {}, rows.flatMap(([name, text, kind]) => [h("dt", {}, name), h(`dd.is-${kind}`, {}, text)]));
}

/** Return a picture, whose bytes are fetched as base64. */
export function picture(shown, fetchWhole) {
  const image = h("img", { alt: shown.name });
  fetchWhole(shown.at).then((text) => { image.src = `data:${shown.mime_type};base64,${text}`; }, () => {});
  return h("figure.part.picture", {}, image, h("figcaption.muted", {}, shown.name));
}
