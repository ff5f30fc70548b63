// The filters of a view, which the address of the page has behind a `?`, so that a link or a reload finds them again.
import { fill, h } from "./dom.js";

/** Return the path of the page's address, and the filters behind it. */
export function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { path: path.split("/").map(decoded), query: new URLSearchParams(query) };
}

function decoded(part) {
  try { return decodeURIComponent(part); } catch { return part; }
}

/** The filters of one view: `new Filters({text: "", sort: "oldest"}, () => load())`. */
export class Filters {
  constructor(defaults, changed) {
    Object.assign(this, { defaults, changed, values: { ...defaults } });
    this.fields = new Map();
  }

  /** Take what the address says; return whether it is something else than before. */
  read() {
    const { query } = address();
    const before = this.query();
    for (const [name, other] of Object.entries(this.defaults)) this.values[name] = query.get(name) ?? other;
    for (const [name, field] of this.fields) if (field !== document.activeElement) field.value = this.values[name];
    return this.query() !== before;
  }

  set(name, value) {
    this.values[name] = value;
    history.replaceState(null, "", `#/${address().path.map(encodeURIComponent).join("/")}${this.query()}`);
    this.changed();
  }

  /** Return what is no default as the end of an address. */
  query() {
    const given = Object.entries(this.values).filter(([name, value]) => value !== this.defaults[name]);
    return given.length ? `?${new URLSearchParams(given)}` : "";
  }

  get any() { return this.query() !== ""; }

  text(name, label, type = "search") {
    return this.field(name, h("input", {
      type, placeholder: label, aria: { label }, oninput: (event) => this.set(name, event.target.value.trim()), autocomplete: "off", spellcheck: false,
    }));
  }

  select(name, label, options) {
    const field = this.field(name, h("select", { aria: { label }, onchange: (event) => this.set(name, event.target.value) }));
    this.choose(name, options);
    return field;
  }

  /** Give a select other options; what is chosen stays, also where it is none of them any more. */
  choose(name, options) {
    const value = this.values[name];
    const all = options.some(([key]) => key === value) ? options : [...options, [value, value]];
    fill(this.fields.get(name), all, () => all.map(([key, words]) => h("option", { value: key, selected: key === value }, words)));
  }

  field(name, element) {
    this.fields.set(name, element);
    element.value = this.values[name];
    return element;
  }
}

/** Return a function that does `work` soon, once for many calls. */
export function later(work, soon = 150) {
  let timer = 0;
  return () => { if (!timer) timer = setTimeout(() => { timer = 0; work(); }, soon); };
}
