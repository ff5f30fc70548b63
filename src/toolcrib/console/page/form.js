// A form in which a person edits arguments, or gives a result: its fields are the server's, and what it holds is read as the text of JSON,
// so that no number loses a digit.
import { h } from "./dom.js";

const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
let ids = 0;

/** Return the form's element, and `text()`, which returns what it holds. */
export function argumentsForm(fields, changed) {
  const rows = fields.map((field) => row(field, changed));
  return { element: h("div.fields", {}, rows.map((one) => one.element)), text: () => objectOf(rows, "\n") };
}

/** Return the element of one field, and `text()`, which returns what it holds. */
export function valueForm(field) { return row(field, () => {}); }

function objectOf(rows, end = "") {
  const given = rows.filter((one) => one.given()).map((one) => `${end && "  "}${JSON.stringify(one.name)}: ${one.text()}`);
  return `{${end}${given.join(`,${end || " "}`)}${end}}`;
}

/** Return one field: its element, its name, whether it is given, and its text as JSON. */
function row(field, changed) {
  const id = `field-${++ids}`;
  const about = field.help ? h("p.muted", { id: `${id}-help` }, field.help) : null;
  const out = field.required ? null : h("input", { type: "checkbox", checked: !field.given, onchange: () => { dim(); changed(); } });
  const typed = () => { if (out) out.checked = false; dim(); changed(); };
  const held = KINDS[field.kind](field, id, typed);
  const label = field.kind === "group" ? h("legend", {}, field.name) : h("label", { htmlFor: id }, field.name);
  const leave = out ? h("label.leave", {}, out, h("span", {}, "leave out")) : null;
  const element = h(field.kind === "group" ? "fieldset.field" : "div.field", {}, label, leave, held.element, about);
  if (about) held.control?.setAttribute("aria-describedby", about.id);
  const dim = () => element.classList.toggle("is-out", Boolean(out?.checked));
  dim();
  return { element, name: field.name, given: () => !out?.checked, text: held.text };
}

const KINDS = {
  text(field, id, typed) {
    const control = field.long
      ? h("textarea", { id, rows: Math.min(10, field.value.split("\n").length + 2), value: field.value, oninput: typed })
      : h("input", { id, type: "text", value: field.value, oninput: typed, autocomplete: "off", spellcheck: false });
    const none = field.nullable ? h("input", { type: "checkbox", checked: field.null, onchange: typed }) : null;
    control.addEventListener("input", () => { if (none) none.checked = false; });
    const element = none ? h("div.row", {}, control, h("label.leave", {}, none, h("span", {}, "null"))) : control;
    return { control, element, text: () => (none?.checked ? "null" : JSON.stringify(control.value)) };
  },
  number(field, id, typed) {
    const control = h("input", { id, type: "text", inputMode: "decimal", value: field.value, oninput: typed, autocomplete: "off", placeholder: field.nullable ? "null" : "" });
    const text = () => {
      const value = control.value.trim();
      if (!value && field.nullable) return "null";
      return NUMBER.test(value) ? value : JSON.stringify(value);  // which the server says is no number
    };
    return { control, element: control, text };
  },
  choice(field, id, typed) {
    const empty = field.value ? [] : [h("option", { value: "null", selected: true }, "")];
    const control = h("select", { id, onchange: typed }, empty,
      field.choices.map((text) => h("option", { value: text, selected: text === field.value }, plain(text))));
    return { control, element: control, text: () => control.value };
  },
  json(field, id, typed) {
    const control = h("textarea.mono", { id, rows: 2, value: field.value, oninput: typed, spellcheck: false, placeholder: "JSON" });
    return { control, element: control, text: () => control.value.trim() || "null" };
  },
  group(field, id, typed) {
    const rows = field.fields.map((one) => row(one, typed));
    return { element: h("div.fields", {}, rows.map((one) => one.element)), text: () => objectOf(rows) };
  },
};

function plain(text) {
  try { const value = JSON.parse(text); return typeof value === "string" ? value : text; } catch { return text; }
}
