// Agents, turns, programs and calls: the list with its filters, one of them in full, and the timeline.
import { ago, duration, fill, h, number, picture, status, time, toast, value } from "./dom.js";
import { Filters, later } from "./filters.js";
import { activityLink as link, card, originsOf } from "./request.js";
import { get, getWhole, Newest, on, state } from "./server.js";
import { Waterfall } from "./waterfall.js";

const KINDS = [["", "overview"], ["all", "everything"], ["agent", "agents"], ["turn", "turns"], ["program", "programs"], ["session", "sessions"], ["request", "requests"], ["call", "calls"]];
const STATUSES = [["running,suspended,interrupted", "unfinished"], ["suspended", "suspended"], ["resumed", "resumed in another run"], ["running", "running"], ["lost", "lost"], ["completed", "completed"], ["failed,error", "failed"], ["rejected,refused", "rejected"], ["cancelled", "cancelled"]];
const AGAIN = 30_000;  // what has gone silent is shown so, though no event says it

function keyOf(one) {
  return JSON.stringify([one.source, one.id, one.run_id]);
}

/** Return what to call it: a program has no name of its own. */
function named(one) {
  if (one.name !== one.source) return one.name;
  return one.id.length > 24 ? `…${one.id.slice(-6)}` : one.id;
}

/** Return when a day begins here, or another one so many days later; empty for no date. */
function midnight(date, later = 0) {
  const day = new Date(`${date}T00:00`);
  if (Number.isNaN(day.getTime())) return "";
  day.setDate(day.getDate() + later);
  return day.toISOString();
}

/** Return how it stands: one that has said nothing for a while may have died. */
function standing(one) {
  if (!one.quiet_since) return status(one.status);
  if (one.status === "lost") return status("lost", "no event says how it ended: its process died");
  return status("quiet", "it may still be at work, or its process died", ["no news for ", ago(one.quiet_since)]);
}

/** Return how long ago something began, and its date where that is more than a day. */
function begun(at) {
  return Date.now() - new Date(at) < 86_400_000 ? ago(at) : time(at);
}

/** Return a row that leads to a call or run. */
export function row(one, current, query = "") {
  return h("a.row-link", { href: link(one) + query, data: { key: keyOf(one) }, aria: keyOf(one) === current ? { current: "true" } : {} },
    h("span.title", {}, h("span.kind", {}, one.source), h("span.mono.name", {}, named(one)), h("span.grow"), standing(one)),
    h("span.sub", {}, begun(one.started_at), one.duration_ms !== null && one.ended_at ? ` · ${duration(one.duration_ms)}` : "",
      one.principal ? ` · ${one.principal}` : "", one.entry ? ` · ${one.entry}` : ""));
}

/** The view of all calls and runs. */
export class Activities {
  constructor() {
    this.rows = [];
    this.more = false;
    this.filter = new Filters({ text: "", source: "", status: [], name: "", principal: "", from: "", to: "" }, later(() => this.load(true)));
    this.filter.read();
    this.newest = new Newest();
    this.list = h("ul.rows");
    this.foot = h("div.foot");
    this.side = h("section.side", { aria: { label: "Calls and runs" } }, this.filters(), this.list, this.foot);
    this.detail = new Detail();
    this.element = h("div.split", {}, this.side, this.detail.element);
    const soon = later(() => this.load());
    this.offs = [on("events", soon), on("inbox", soon), on("reset", soon), every(soon)];
  }

  filters() {
    const { filter } = this;
    const tools = h("datalist", { id: "tools" }, state.tools.map((name) => h("option", { value: name })));
    const tool = filter.text("name", "Tool", "text");
    tool.setAttribute("list", "tools");
    this.search = filter.text("text", "Search names, ids, arguments, results");
    this.search.id = "search";
    return h("form.filters", { role: "search", onsubmit: (event) => event.preventDefault() }, this.search,
      h("div.row", {}, filter.select("source", "Kind", KINDS), filter.several("status", "Status", "any status", STATUSES)),
      h("div.row", {}, tool, tools, filter.text("principal", "Principal", "text")),
      h("div.row", {}, h("label", {}, "From ", filter.text("from", "From this day on", "date")), h("label", {}, "to ", filter.text("to", "Up to this day", "date"))));
  }

  /** Return what to ask for: without a filter what goes on inside nothing else, with one every call that fits. */
  wanted(limit) {
    const { source, from, to, ...rest } = this.filter.values;
    const top = !source && !Object.values(rest).some((value) => value.length);
    return { ...rest, source: source === "all" ? "" : source, top: top ? "1" : "", since: midnight(from), until: midnight(to, 1), limit };
  }

  show(source, id, run) {
    if (this.filter.read()) this.rows = [];
    this.element.classList.toggle("open", Boolean(id));
    this.current = id ? JSON.stringify([source, id, run || ""]) : "";
    this.detail.show(source, id, run);
    this.draw();
    this.load();
  }

  async load(fresh = false) {
    if (fresh) this.rows = [];  // they fitted other filters
    const shows = this.newest.ask(this.filter.query());
    let found;
    try { found = await get("api/activities", this.wanted(60)); } catch { return; }
    if (!shows()) return;
    const last = found.activities.at(-1)?.first_position ?? 0;
    const kept = !found.more ? [] : this.rows.filter((one) => one.first_position < last);
    this.rows = [...found.activities, ...kept];
    this.more = kept.length ? this.more : found.more;
    this.draw();
  }

  async loadMore() {
    const before = this.rows.at(-1)?.first_position;
    const found = await get("api/activities", { ...this.wanted(60), before });
    this.rows.push(...found.activities);
    this.more = found.more;
    this.draw();
  }

  draw() {
    const focused = document.activeElement?.dataset?.key;
    const changed = fill(this.list, [this.current, this.filter.query(), this.rows], () => this.rows.map((one) => h("li", {}, row(one, this.current, this.filter.query()))));
    if (changed && focused) this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    fill(this.foot, [this.more, this.rows.length === 0, this.filter.any], () => [
      this.rows.length ? null : h("p.empty", {}, this.filter.any ? "Nothing fits these filters." : "Nothing has happened yet."),
      this.more ? h("button.quiet", { type: "button", onclick: () => this.loadMore().catch((error) => toast(error.message, true)) }, "Show older") : null,
    ]);
  }

  leave() {
    for (const off of this.offs) off();
    this.detail.leave();
  }
}

/** One call or run in full, kept up to date. */
class Detail {
  constructor() {
    this.newest = new Newest();
    this.slots = Object.fromEntries(["head", "requests", "source", "children", "pictures", "waterfall", "values", "events"].map((name) => [name, h("div")]));
    this.empty = h("p.empty", {}, "Choose a call or a run to see all of it.");
    this.element = h("section.detail", { aria: { label: "Details" } }, this.empty);
    const soon = later(() => this.load());
    this.offs = [
      on("events", ({ events }) => { if (this.id && events.some((event) => this.concerns(event))) soon(); }),
      on("inbox", () => { if (this.id) soon(); }),
      on("reset", () => { if (this.id) soon(); }),
      every(() => { if (this.id) soon(); }),
    ];
  }

  concerns(event) {
    return event.id === this.id || this.inside.has(event.id) || event.kind === "received" || event.kind === "opened";
  }

  show(source, id, run) {
    if (id === this.id && source === this.sourceKind && run === this.run) return;
    Object.assign(this, { sourceKind: source, id, run, inside: new Set() });
    if (!id) return void this.element.replaceChildren(this.empty);
    this.slots = Object.fromEntries(Object.keys(this.slots).map((name) => [name, h("div")]));
    this.element.replaceChildren(h("a.back", { href: "#/activity" }, "← Activity"), ...Object.values(this.slots));
    this.element.scrollTop = 0;
    this.waterfall = new Waterfall({ source, id, run });
    this.load();
  }

  async load() {
    const { id } = this;
    const shows = this.newest.ask(keyOf({ source: this.sourceKind, id, run_id: this.run }));
    let view;
    try {
      view = await get("api/activity", { source: this.sourceKind, id, run: this.run });
    } catch (error) {
      if (id === this.id && !this.slots.head.firstChild) this.slots.head.replaceChildren(h("p.bad", {}, error.message));
      return;
    }
    if (id !== this.id || !shows()) return;  // another one may be open, or none
    this.inside = new Set(view.children.map((child) => child.id));
    this.draw(view);
  }

  draw(view) {
    const one = view.activity;
    const { slots } = this;
    fill(slots.head, [one, view.parent, view.approval, view.decisions, view.facts, view.waits_since, view.waited_ms], () => this.head(view));
    fill(slots.requests, view.requests, () => view.requests.map(card));
    fill(slots.source, view.source ?? null, () => (view.source ? source(view.source) : null));
    fill(slots.children, view.children, () => (view.children.length ? h("section.part", {},
      h("h3", {}, one.source === "call" ? "Made by this call" : one.source === "agent" ? "Turns and calls" : "Calls", h("span.muted", {}, ` ${view.children.length}${view.children.length === 200 ? " latest" : ""}`)),
      h("ul.rows.inner", {}, [...view.children].reverse().map((child) => h("li", {}, row(child))))) : null));
    fill(slots.waterfall, view.children.length > 0, () => (view.children.length ? this.waterfall.element : null));
    this.waterfall.load();
    fill(slots.pictures, [view.pictures, view.files], () => [
      ...(view.pictures || []).map((shown) => picture(shown, getWhole)),
      view.files?.length ? h("section.part", {}, h("h3", {}, "Files"), h("ul", {}, view.files.map((text) => h("li.mono", {}, text)))) : null,
    ]);
    fill(slots.values, view.values, () => view.values.map((part) => value(part, getWhole)));
    fill(slots.events, view.events, () => h("details.part", {}, h("summary", {}, `Events ${view.events.length}${view.more_events ? " and more" : ""}`),
      this.events(view)));
  }

  /** Return the events of this call or run, with a button for those that come after. */
  events(view) {
    const { sourceKind, id, run } = this;
    const list = h("ol.events", {}, view.events.map((event) => eventRow(event, false)));
    let after = view.events.at(-1)?.position;
    const more = h("button.quiet", { type: "button", hidden: !view.more_events, onclick: async () => {
      const next = await get("api/events", { source: sourceKind, id, run, after });
      list.append(...next.events.map((event) => eventRow(event, false)));
      after = next.events.at(-1)?.position ?? after;
      more.hidden = !next.more;
    } }, "Show more");
    return [list, more];
  }

  head({ activity: one, parent, approval, decisions, waits_since: since, waited_ms: waited, facts: more = [] }) {
    const facts = [
      ["Started", time(one.started_at)],
      one.ended_at ? ["Took", duration(one.duration_ms)] : ["So far", ago(one.started_at)],
      since ? ["Waits for a person", ["since ", ago(since, " ago")]] : waited !== undefined ? ["Waited for a person", duration(waited)] : null,
      parent ? ["Part of", h("a", { href: link(parent) }, `${parent.source} ${named(parent)}`)] : null,
      one.principal ? ["On behalf of", one.principal] : null,
      one.entry ? ["Came by", one.entry] : null,
      ...more,
      ["Id", h("code", {}, one.id)],
      one.run_id ? ["Run", h("code", {}, one.run_id)] : null,
    ].filter(Boolean);
    return [
      h("h2", {}, h("span.kind", {}, one.source), " ", h("span.mono", {}, named(one)), " ", standing(one)),
      h("dl.facts", {}, facts.map(([name, fact]) => h("div", {}, h("dt", {}, name), h("dd", {}, fact)))),
      approval ? h(`p.answered.is-${approval.kind === "denial" ? "denied" : "approved"}`, {},
        h("b", {}, approval.kind === "denial" ? "Denied" : approval.done ? "Said to be done, and not run again," : "Approved"),
        ` by ${approval.approver}`, approval.at ? [" at ", time(approval.at)] : "", approval.message ? h("q", {}, approval.message) : null) : null,
      decisions?.length ? h("section.part", {}, h("h3", {}, "Decisions"), h("ul.decisions", {}, decisions.map((note) =>
        h("li", {}, h("b", {}, String(note.decision ?? note.kind ?? "")), ` ${note.hook ?? ""} `, h("span.muted", {}, note.reason ?? ""), originsOf(note.origins, one.run_id))))) : null,
    ];
  }

  leave() { for (const off of this.offs) off(); }
}

/** Return a program with the lines that it waits on marked. */
function source({ code, lines }) {
  const waits = new Map();
  for (const call of lines) for (const line of call.lines) waits.set(line, [...(waits.get(line) || []), call]);
  const rows = code.replace(/\n$/, "").split("\n");
  const unsure = lines.some((call) => call.lines.length > 1);
  return h("section.part", {}, h("h3", {}, "Program"),
    h("ol.source", { tabIndex: 0, aria: { label: "Program" } }, rows.map((text, index) => {
      const calls = waits.get(index + 1);
      return h(`li${calls ? ".waits" : ""}`, calls ? { aria: { current: "step" } } : {}, h("code", {}, text || " "),
        calls ? h("a.mark", { href: link({ source: "call", ...calls[0] }) }, `waits for ${calls.map((call) => call.name).join(", ")}`) : null);
    })),
    unsure ? h("p.muted", {}, "It may be any of the marked lines: they call the same tool.") : null);
}

function eventRow(event, withLink) {
  const name = withLink ? h("a.mono.name", { href: link(event) }, event.name) : null;
  return h(`li.event.is-${event.kind}`, {}, time(event.at), h("span.what", {}, event.source === "call" ? event.kind : `${event.source} ${event.kind}`), name, h("span.text", {}, event.text));
}

const SHOWN = 400;

/** What happens, as it happens: the latest at the top. */
export class Timeline {
  constructor() {
    this.list = h("ol.events", { aria: { label: "Events, the latest first" } });
    this.paused = false;
    this.held = [];
    this.note = h("span.muted");
    this.button = h("button", { type: "button", aria: { pressed: "false" }, onclick: () => this.pause() }, "Pause");
    this.element = h("section.page", { aria: { label: "Timeline" } }, h("div.row", {}, h("h1", {}, "Timeline"), h("span.grow"), this.note, this.button), this.list);
    this.offs = [on("events", ({ events }) => this.add(events)), on("reset", () => this.load())];
  }

  show() { this.load(); }

  async load() {
    try {
      const { events } = await get("api/events", { after: Math.max(0, state.last - 150) });
      this.list.replaceChildren();
      this.top = 0;
      this.add(events.map((event) => ({ ...event })));
    } catch (error) { toast(error.message, true); }
  }

  add(events) {
    const fresh = events.filter((event) => event.position > (this.top || 0));
    if (!fresh.length) return;
    this.top = fresh.at(-1).position;
    state.last = Math.max(state.last, this.top);
    if (this.paused) {
      this.held.push(...fresh);
      this.held.splice(0, Math.max(0, this.held.length - SHOWN));
      this.note.textContent = `${number(this.held.length)} new `;
      return;
    }
    this.list.prepend(...fresh.slice(-SHOWN).reverse().map((event) => eventRow(event, true)));
    while (this.list.childElementCount > SHOWN) this.list.lastElementChild.remove();
  }

  pause() {
    this.paused = !this.paused;
    this.button.textContent = this.paused ? "Go on" : "Pause";
    this.button.setAttribute("aria-pressed", String(this.paused));
    this.note.textContent = "";
    if (!this.paused && this.held.length) {
      const { held } = this;
      this.held = [];
      this.list.prepend(...held.reverse().map((event) => eventRow(event, true)));
    }
  }

  leave() { for (const off of this.offs) off(); }
}

function every(work) {
  const timer = setInterval(work, AGAIN);
  return () => clearInterval(timer);
}
