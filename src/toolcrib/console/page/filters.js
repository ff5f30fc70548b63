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
    for (const [name, other] of Object.entries(this.defaults)) this.values[name] = Array.isArray(other) ? query.getAll(name) : query.get(name) ?? other;
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
    const given = Object.entries(this.values).flatMap(([name, value]) => [value].flat().filter((one) => one !== this.defaults[name]).map((one) => [name, one]));
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

  /** Return a choice of several values, whose parameter the address repeats; `any` is what it says without one. */
  several(name, label, any, options) {
    const field = this.field(name, new Choices(label, any, (values) => this.set(name, values)));
    this.choose(name, options);
    return field.element;
  }

  /** Give a select other options; what is chosen stays, also where it is none of them any more. */
  choose(name, options) {
    const field = this.fields.get(name);
    const values = [this.values[name]].flat();
    const all = [...options, ...values.filter((value) => !options.some(([key]) => key === value)).map((value) => [value, value])];
    if (field instanceof Choices) return field.choose(all, values);
    fill(field, all, () => all.map(([key, words]) => h("option", { value: key, selected: key === values[0] }, words)));
  }

  field(name, element) {
    this.fields.set(name, element);
    element.value = this.values[name];
    return element;
  }
}

/** A field of several values: a box for each, behind a line that says which are chosen. */
class Choices {
  constructor(label, any, changed) {
    Object.assign(this, { label, any, changed, options: [] });
    this.summary = h("summary");
    this.list = h("div.boxes", { role: "group", aria: { label } });
    this.element = h("details.choices", { onkeydown: (event) => this.key(event), onfocusout: (event) => this.close(event.relatedTarget) }, this.summary, this.list);
  }

  choose(options, values) {
    this.options = options;
    fill(this.list, options, () => options.map(([key, words]) => h("label", {}, h("input", { type: "checkbox", value: key, onchange: () => this.change() }), words)));
    this.value = values;
  }

  set value(values) {
    for (const box of this.boxes) box.checked = values.includes(box.value);
    const chosen = this.options.filter(([key]) => values.includes(key)).map(([, words]) => words);
    this.summary.textContent = chosen.join(", ") || this.any;
    this.summary.setAttribute("aria-label", `${this.label}: ${this.summary.textContent}`);
  }

  get boxes() { return [...this.list.querySelectorAll("input")]; }

  change() {
    const values = this.boxes.filter((box) => box.checked).map((box) => box.value);
    this.value = values;
    this.changed(values);
  }

  /** Escape closes the list, and leaves the focus on its line. */
  key(event) {
    if (event.key !== "Escape" || !this.element.open) return;
    event.stopPropagation();
    this.element.open = false;
    this.summary.focus();
  }

  /** Close the list where the focus goes elsewhere on the page. */
  close(next) {
    if (next && !this.element.contains(next)) this.element.open = false;
  }
}

/** Return a function that does `work` soon, once for many calls. */
export function later(work, soon = 150) {
  let timer = 0;
  return () => { if (!timer) timer = setTimeout(() => { timer = 0; work(); }, soon); };
}
