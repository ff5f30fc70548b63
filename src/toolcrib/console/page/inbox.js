// The list of pending requests, with its filters and answers to several at once; and the standing grants.
import { ago, fill, h, number, toast, whole } from "./dom.js";
import { Filters, later } from "./filters.js";
import { askName, myName } from "./name.js";
import { card } from "./request.js";
import { answered, get, Newest, on, post, state } from "./server.js";

const SORTS = [["oldest", "oldest first"], ["newest", "newest first"], ["tool", "by tool"], ["principal", "by principal"]];
const PAGE = 60;
const WIDE = matchMedia("(min-width: 761px)");  // both the list and a request have room
const AT_ONCE = 100;  // requests that one answer of the server is about

/** The view of all pending requests. */
export class Inbox {
  constructor() {
    this.limit = PAGE;
    this.chosen = new Set();
    this.rows = [];
    this.newest = new Newest();
    const soon = later(() => this.load());
    this.filters = new Filters({ text: "", tool: "", agent: "", principal: "", doubt: "", sort: "oldest" }, () => { this.limit = PAGE; this.chosen.clear(); soon(); });
    this.filters.read();
    this.list = h("ul.rows");
    this.note = h("div.empty");
    this.foot = h("div.foot");
    this.bulk = h("div.bulk");
    this.side = h("section.side", { aria: { label: "Pending requests" } }, h("h1", {}, "Waiting for approval"), this.form(), this.bulk, this.note, this.list, this.foot);
    this.main = h("section.detail", { aria: { label: "Request" } });
    this.element = h("div.split", {}, this.side, this.main);
    this.off = on("inbox", soon);
  }

  form() {
    const { filters } = this;
    this.search = filters.text("text", "Search tools, reasons, arguments, ids");
    this.search.id = "search";
    return h("form.filters", { role: "search", onsubmit: (event) => event.preventDefault() }, this.search,
      h("div.row", {}, filters.select("tool", "Tool", []), filters.select("agent", "Asked by", []), filters.select("principal", "On behalf of", []), filters.select("doubt", "Kind", [["", "any kind"], ["1", "in doubt"]]), filters.select("sort", "Order", SORTS)));
  }

  show(id) {
    if (this.filters.read()) this.chosen.clear();
    this.detail(id);
    this.load();
  }

  detail(id) {
    this.id = id;
    this.element.classList.toggle("open", Boolean(id));
    fill(this.main, id || "", () => (id ? [h("a.back", { href: `#/inbox${this.filters.query()}` }, "← Inbox"), card(id)] : h("p.empty", {}, "Choose a request to see what is asked.")));
  }

  async load() {
    const shows = this.newest.ask(this.filters.query());
    let found;
    try { found = await get("api/inbox", { ...this.filters.values, limit: this.limit }); } catch { return; }
    if (!shows()) return;
    this.rows = found.requests;
    this.found = found;
    for (const [name, all, values] of [["tool", "any tool", found.tools], ["agent", "asked by any", found.agents], ["principal", "on behalf of any", found.principals]]) {
      this.filters.choose(name, [["", all], ...values.map((one) => [one, one])]);
    }
    const pending = new Set(state.pending);
    for (const id of this.chosen) if (!pending.has(id)) this.chosen.delete(id);
    if (!this.id && this.rows.length && WIDE.matches) this.open(this.rows[0].id);  // before the list shows: a key means it
    this.draw();
  }

  /** Show a request beside the list without a step in the history of the browser; the focus stays where it is. */
  open(id) {
    history.replaceState(null, "", `#/inbox/${encodeURIComponent(id)}${this.filters.query()}`);
    this.detail(id);
  }

  draw() {
    const { found } = this;
    const empty = found.total ? "Nothing fits these filters." : "No request is pending.";
    fill(this.note, [found.found > 0, empty], () => (found.found ? null : [h("p", {}, empty), found.total ? null : h("p.muted", {}, "A request for approval appears here at once.")]));
    const focused = document.activeElement?.dataset?.key;
    const query = this.filters.query();
    const changed = fill(this.list, [this.id, query, this.rows], () => this.rows.map((one) => this.row(one, query)));
    for (const box of this.list.querySelectorAll("input")) box.checked = this.chosen.has(box.dataset.id);
    if (changed && focused) this.list.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    fill(this.foot, [found.more, found.found - this.rows.length], () => (found.more
      ? h("button.quiet", { type: "button", onclick: () => { this.limit += PAGE; this.load(); } }, `Show more of ${number(found.found)}`) : null));
    this.drawBulk();
  }

  row(one, query) {
    const by = one.origin.find((part) => part.source !== "turn");
    const box = h("input", { type: "checkbox", data: { id: one.id }, aria: { label: `Choose ${one.tool}` }, onchange: () => this.choose(one.id, box.checked) });
    const where = { href: `#/inbox/${encodeURIComponent(one.id)}${query}`, data: { key: one.id }, aria: one.id === this.id ? { current: "true" } : {} };
    const why = one.ended ? `its call is over (${one.ended})` : one.reason;
    const who = [by ? (by.name === by.source ? by.source : `${by.source} ${by.name}`) : one.agent && `agent ${one.agent}`, one.principal, one.conversation_id && `conversation ${one.conversation_id}`].filter(Boolean).join(" · ");
    return h("li.choose", {}, box, h("a.row-link", where,
      h("span.title", {}, h("span.mono", {}, one.tool), one.in_doubt ? h("span.status.is-suspended", {}, one.title.slice(one.tool.length + 1)) : null, h("span.grow"), ago(one.created_at)),
      one.text ? h("span.sub.mono", {}, one.text) : null, why ? h("span.sub", {}, why) : null, who ? h("span.sub", {}, who) : null));
  }

  choose(id, yes) {
    if (yes) this.chosen.add(id);
    else this.chosen.delete(id);
    this.drawBulk();
  }

  drawBulk() {
    const { found, chosen } = this;
    fill(this.bulk, [found.found > 1, found.found, [...chosen], state.role], () => {
      if (found.found < 2 || state.role === "viewer") return null;
      const all = h("input", { type: "checkbox", checked: chosen.size > 0 && chosen.size >= found.found, onchange: () => this.chooseAll(all.checked) });
      return [h("label.leave", {}, all, h("span", {}, chosen.size ? `${number(chosen.size)} chosen` : `All ${number(found.found)}`)), h("span.grow"),
        chosen.size ? h("button.primary", { type: "button", onclick: () => this.answerAll("approve") }, "Approve…") : null,
        chosen.size ? h("button.danger", { type: "button", onclick: () => this.answerAll("deny") }, "Deny…") : null];
    });
  }

  /** Choose every request that fits the filters, shown or not. */
  async chooseAll(yes) {
    this.chosen.clear();
    for (let start = 0; yes; start += 200) {
      const found = await get("api/inbox", { ...this.filters.values, start, limit: 200 }).catch(() => ({ requests: [] }));
      for (const one of found.requests) this.chosen.add(one.id);
      if (!found.more) break;
    }
    this.draw();
  }

  async answerAll(answer) {
    const said = await confirmed(answer, this.chosen.size);
    const name = said && (myName() || (await askName()));
    if (!name) return;
    const ids = [...this.chosen];
    const failed = {};
    try {
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        const part = ids.slice(at, at + AT_ONCE);
        const came = await post("api/answers", { requests: part, answer, name, message: said.message });
        Object.assign(failed, came.failed);
        answered(part.filter((id) => !(id in failed) && !came.pending.includes(id)));
        for (const id of part) this.chosen.delete(id);
      }
    } catch (error) {
      toast(error.message, true);
    }
    const left = Object.values(failed);
    const done = ids.length - left.length - this.chosen.size;
    toast(`${number(done)} ${answer === "deny" ? "denied" : "approved"}${left.length ? `; ${number(left.length)} not: ${left[0]}` : ""}`, left.length > 0);
    this.load();
  }

  /** Choose the request that has the focus, or else the one that is open, or take it back. */
  toggle() {
    const row = document.activeElement?.closest?.("li.choose") ?? this.list.querySelector("li.choose:has([aria-current])");
    const box = row?.querySelector("input");
    if (box) { box.checked = !box.checked; this.choose(box.dataset.id, box.checked); }
  }

  leave() { this.off(); }
}

/** Ask whether several requests are to be answered; returns the message for the models, or null. */
function confirmed(answer, size) {
  const deny = answer === "deny";
  const message = h("textarea", { id: "bulk-message", rows: 2, maxLength: 10000 });
  const dialog = h("dialog", { aria: { labelledby: "bulk-title" } }, h("form", { method: "dialog" },
    h("h2", { id: "bulk-title" }, `${deny ? "Deny" : "Approve"} ${number(size)} ${size === 1 ? "request" : "requests"}?`),
    h("p.muted", {}, deny ? "None of these calls is made." : "Each call is made with exactly the arguments that its request shows."),
    deny ? [h("label", { htmlFor: "bulk-message" }, "What should the models read?"), message] : null,
    h("div.row", {}, h(`button.${deny ? "danger" : "primary"}`, { type: "submit", value: "yes" }, deny ? "Deny all" : "Approve all"), h("button", { type: "submit", value: "" }, "Cancel"))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => {
    dialog.remove();
    resolve(dialog.returnValue === "yes" ? { message: message.value.trim() } : null);
  }));
}

/** The view of standing grants. */
export class Grants {
  constructor() {
    this.body = h("div");
    this.element = h("section.page", { aria: { label: "Standing grants" } }, h("h1", {}, "Standing grants"),
      h("p.muted", {}, "What may run without asking again. Taking one back counts from the next call on."), this.body);
    this.off = on("inbox", () => this.load());
  }

  show() { this.load(); }

  async load() {
    let found;
    try { found = await get("api/standing"); } catch { return; }
    fill(this.body, found.grants, () => (found.grants.length ? h("ul.cards", {}, found.grants.map((grant) => this.grant(grant))) : h("p.empty", {}, "There are none.")));
  }

  grant(grant) {
    const over = grant.expires_at && new Date(grant.expires_at) <= new Date();
    const take = h("button.danger", { type: "button", onclick: async () => {
      take.disabled = true;
      try { await post("api/revoke", { grant }); toast(`${grant.tool}: taken back`); } catch (error) { toast(error.message, true); }
      this.load();
    } }, "Take back");
    return h("li.grant", {}, h("div", {}, h("b.mono", {}, grant.tool), grant.text.slice(grant.tool.length),
      h("p.muted", {}, `by ${grant.by} for ${grant.principal === "*" ? "every principal" : grant.principal || "no principal"}, `,
        grant.expires_at ? [over ? "ended " : "until ", whole(grant.expires_at)] : "until it is taken back",
        `; used ${grant.used_text}`, grant.used.last_at ? [", last ", ago(grant.used.last_at, " ago")] : "")), state.role === "viewer" ? null : take);
  }

  leave() { this.off(); }
}
