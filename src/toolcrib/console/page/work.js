// Durable work: its workers, its queues, and its turns and programs, which can be cancelled, resumed and handed over.
import { ago, beginning, fill, h, number, status, toast } from "./dom.js";
import { Filters, later } from "./filters.js";
import { activityLink, card } from "./request.js";
import { get, Newest, on, post, state } from "./server.js";

const AGAIN = 3_000;
const PAGE = 50;
const AT_ONCE = 50;  // workflows that one answer of the server is about
const COUNTED = 1_000;
const CHANGES = { cancel: ["delayed", "waiting", "running", "suspended"], resume: ["cancelled", "given up"], retry: ["failed"] };  // by the states of the work
const WORDS = { cancel: "Cancel", resume: "Resume", retry: "Retry" };
const MEANT = {
  cancel: "What it did stays done.",
  resume: "What it has recorded is not done again.",
  retry: "What it is known to have done is not done again; a call that had begun asks a person.",
};
const DOTS = { done: "completed", failed: "failed", rejected: "rejected", "given up": "failed", lost: "failed", cancelled: "cancelled", suspended: "suspended", running: "running", recovered: "cancelled", "in doubt": "suspended" };

/** The view of durable work. */
export class Work {
  constructor() {
    this.start = 0;
    this.newest = new Newest();
    this.chosen = new Map();
    const soon = later(() => this.load());
    this.filters = new Filters({ text: "", state: [], queue: "" }, () => { this.start = 0; this.chosen.clear(); soon(); });
    this.filters.read();
    this.workers = h("div");
    this.queues = h("div");
    this.bulk = h("div.bulk");
    this.list = h("div");
    this.element = h("section.page", { aria: { label: "Durable work" } },
      h("h1", {}, "Workers"), this.workers, h("h1", {}, "Queues"), this.queues,
      h("h1", {}, "Turns and programs"),
      h("form.row", { role: "search", onsubmit: (event) => event.preventDefault() }, this.filters.text("text", "Search ids, names, principals, keys"),
        this.filters.several("state", "State", "any state", []), this.filters.select("queue", "Queue", [])), this.bulk, this.list);
    this.off = on("events", soon);
    this.timer = setInterval(() => this.load(), AGAIN);
  }

  show() { this.filters.read(); this.load(); }

  async load() {
    const shows = this.newest.ask(`${this.start}${this.filters.query()}`);
    let found;
    try {
      found = await get("api/work", { ...this.filters.values, start: this.start, limit: PAGE });
    } catch (error) {
      if (shows()) fill(this.list, error.message, () => h("p.bad", {}, error.message));
      return;
    }
    if (!shows()) return;
    this.filters.choose("state", found.states.map((one) => [one, one]));
    this.filters.choose("queue", [["", "any queue"], ...found.queues.map((one) => [one.name, one.name])]);
    fill(this.workers, found.workers, () => (found.workers.length ? h("ul.cards", {}, found.workers.map((one) => this.worker(one))) : h("p.empty", {}, "No worker has worked here.")));
    fill(this.queues, found.queues, () => (found.queues.length ? h("ul.cards", {}, found.queues.map(queue)) : h("p.empty", {}, "Nothing waits, and nothing runs.")));
    this.found = found;
    this.drawBulk();
    fill(this.list, [found.work, found.more, this.start], () => [
      found.work.length ? h("ul.cards", {}, found.work.map((one) => this.work(one))) : h("p.empty", {}, "There is no such work."),
      h("div.row", {}, this.start ? this.turn(-PAGE, "Newer") : null, found.more ? this.turn(PAGE, "Older") : null),
    ]);
  }

  /** A button that shows the next or the last page of the list. */
  turn(by, words) { return h("button.quiet", { type: "button", onclick: () => { this.start = Math.max(0, this.start + by); this.load(); } }, words); }

  /** The count of the work that fits, and what can be done to that which is chosen. */
  drawBulk() {
    const { found, chosen } = this;
    for (const box of this.list.querySelectorAll("input[data-id]")) box.checked = chosen.has(box.dataset.id);
    fill(this.bulk, [found.found, found.work.length, [...chosen.keys()], state.role], () => {
      const fits = found.found === null ? null : h("span.muted", {}, `${found.found > COUNTED ? `more than ${number(COUNTED)}` : number(found.found)} found`);
      if (state.role === "viewer" || !found.work.length) return fits;
      const counted = found.found !== null && found.found <= COUNTED;
      const full = counted ? chosen.size >= found.found : found.work.every((one) => chosen.has(one.id));
      const all = h("input", { type: "checkbox", checked: full, onchange: () => this.chooseAll(all.checked, counted) });
      const states = new Set(chosen.values());
      const can = (action) => chosen.size && [...states].every((one) => CHANGES[action].includes(one));
      return [h("label.leave", {}, all, h("span", {}, chosen.size ? `${number(chosen.size)} chosen` : counted ? `All ${number(found.found)}` : "All on this page")), chosen.size || !counted ? fits : null, h("span.grow"),
        ...Object.keys(CHANGES).filter(can).map((action) => h(`button${action === "cancel" ? ".danger" : ""}`, { type: "button", onclick: () => this.changeAll(action) }, WORDS[action]))];
    });
  }

  choose(one, yes) {
    if (yes) this.chosen.set(one.id, one.state);
    else this.chosen.delete(one.id);
    this.drawBulk();
  }

  /** Choose all work that fits the filters, shown or not; of work that is not counted, that which is shown. */
  async chooseAll(yes, counted) {
    this.chosen.clear();
    let { work, more } = counted && yes ? { work: [], more: true } : { work: yes ? this.found.work : [], more: false };
    while (more) {
      const page = await get("api/work", { ...this.filters.values, start: work.length, limit: 200 }).catch(() => ({ work: [], more: false }));
      work = [...work, ...page.work];
      more = page.more;
    }
    for (const one of work) this.chosen.set(one.id, one.state);
    this.drawBulk();
  }

  async changeAll(action) {
    const ids = [...this.chosen.keys()];
    if (!(await sure(`${WORDS[action]} ${number(ids.length)}? ${MEANT[action]}`, WORDS[action]))) return;
    const failed = [];
    let count = 0;
    try {
      for (let at = 0; at < ids.length; at += AT_ONCE) {
        const part = ids.slice(at, at + AT_ONCE);
        const came = await post(`api/work/${action}`, { ids: part });
        count += came.done;
        failed.push(...Object.values(came.failed));
        for (const id of part) this.chosen.delete(id);
      }
      toast(`${number(count)} done${failed.length ? `; ${number(failed.length)} not: ${failed[0]}` : ""}`, failed.length > 0);
    } catch (error) { toast(error.message, true); }
    this.load();
  }

  worker(one) {
    const about = [`${number(one.pending)} in hand`, `process ${one.pid} on ${one.host}`];
    return h("li.grant", {}, h("div", {}, h("b.mono", {}, one.id), " ", mark(one.state), h("p.muted", {}, about.join(" · "), " · seen ", ago(iso(one.seen_at), " ago"))),
      one.state === "lost" ? this.button("recover", one.id, "Hand over", `Hand the work of ${one.id} over? If it comes back, nothing that it does is recorded.`) : null);
  }

  work(one) {
    const leads = one.kind === "turn" || one.kind === "program" ? { href: activityLink({ source: one.kind, id: one.id }) } : {};
    const about = [one.queue, one.worker && `worker ${one.worker}`, one.attempts > 1 && `begun ${one.attempts} times`, one.principal && `on behalf of ${one.principal}`, one.conversation_id && `conversation ${one.conversation_id}`].filter(Boolean);
    const box = state.role === "viewer" ? null : h("input", { type: "checkbox", data: { id: one.id }, checked: this.chosen.has(one.id), aria: { label: `Choose ${one.target || one.id}` }, onchange: () => this.choose(one, box.checked) });
    const change = Object.keys(CHANGES).find((action) => CHANGES[action].includes(one.state));
    return h("li.grant", {}, box, h("div.grow", {}, h("a", leads, h("span.kind", {}, one.kind), " ", h("span.mono", {}, one.target || one.id)), " ", mark(one.state), one.in_doubt ? [" ", mark("in doubt")] : null,
      ...(one.arguments ?? []).map((text) => h("p.mono.one-line", { title: text }, text)),
      h("p.muted", {}, about.join(" · "), one.created_at ? [" · since ", ago(iso(one.created_at), " ago")] : null, one.target ? ` · ${one.id}` : null), one.error ? h("p.bad", {}, beginning(one.error, 300)) : null),
    one.waits_for?.length ? h("button", { type: "button", onclick: () => this.ask(one.waits_for) }, state.role === "viewer" ? "Request" : one.waits_for.length > 1 ? `Answer ${number(one.waits_for.length)}…` : "Answer…") : null,
    change ? this.button(change, one.id, WORDS[change], `${WORDS[change]} ${one.target || one.id}? ${MEANT[change]}`) : null,
    leads.href && state.role !== "viewer" ? h("button.quiet", { type: "button", onclick: () => this.fork(one) }, "Fork…") : null);
  }

  /** Ask from which call on other work is to do again what this did, and enqueue that. */
  async fork(one) {
    let calls;
    try { ({ calls } = await get("api/work/calls", { id: one.id })); } catch (error) { toast(error.message, true); return; }
    const step = h("select", {}, calls.map((call, at) => h("option", { value: String(at + 1) }, `${at + 1} ${call.tool}: ${call.state}`)));
    const id = h("input", { type: "text", placeholder: "one of its own", autocomplete: "off", spellcheck: false });
    const refused = h("p.bad", { role: "alert" });
    const send = async (event) => {
      event.preventDefault();
      try {
        const { done } = await post("api/work/fork", { id: one.id, step: Number(step.value || 1), new_id: id.value });
        toast(`${done.id} is ${done.state}`);
        dialog.close();
        this.load();
      } catch (error) { refused.textContent = error.message; }
    };
    const dialog = h("dialog", { aria: { label: "Fork" } }, h("form", { onsubmit: send },
      h("p", {}, `Enqueue work that does again what ${one.target || one.id} did? Its calls are new ones: a person who approved one of them is asked again.`),
      calls.length ? h("label.field", {}, "The first call to be made again", step) : null,
      calls.length ? h("p.muted", {}, "What came before is kept: the new work is given those results.") : null,
      h("label.field", {}, "The id of the new work", id), refused,
      h("div.row", {}, h("button.primary", { type: "submit" }, "Fork"), h("button", { type: "button", onclick: () => dialog.close() }, "Leave it"))));
    dialog.addEventListener("close", () => dialog.remove());
    document.body.append(dialog);
    dialog.showModal();
  }

  /** Show the requests that work waits for, with their answers. */
  ask(ids) {
    const dialog = h("dialog.asked", { aria: { label: "Request" } }, ids.map((id) => card(id)), h("div.row", {}, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
    dialog.addEventListener("close", () => { dialog.remove(); this.load(); });
    document.body.append(dialog);
    dialog.showModal();
  }

  button(action, id, words, question) {
    if (state.role === "viewer") return null;
    const made = h(`button${action === "cancel" ? ".danger" : ""}`, { type: "button", onclick: async () => {
      if (!(await sure(question, words))) return;
      made.disabled = true;
      try {
        const { done } = await post(`api/work/${action}`, { id });
        toast(action === "recover" ? `${number(done.length)} handed over` : `it is ${done.state}`);
      } catch (error) { toast(error.message, true); }
      this.load();
    } }, words);
    return made;
  }

  leave() { this.off(); clearInterval(this.timer); }
}

function queue(one) {
  return h("li.grant", {}, h("div", {}, h("b.mono", {}, one.name ?? "no queue"),
    h("p.muted", {}, `${number(one.waiting)} waiting · ${number(one.running)} running`, one.oldest_at ? [" · the oldest waits since ", ago(iso(one.oldest_at), " ago")] : null)));
}

function mark(word) { return status(DOTS[word] ?? "other", "", [word]); }

function iso(seconds) { return new Date(seconds * 1000).toISOString(); }

/** Ask whether something is to be done. */
function sure(question, words) {
  const dialog = h("dialog", { aria: { label: words } }, h("form", { method: "dialog" }, h("p", {}, question),
    h("div.row", {}, h("button.primary", { type: "submit", value: "yes" }, words), h("button", { type: "submit", value: "" }, "Leave it"))));
  document.body.append(dialog);
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => { dialog.remove(); resolve(dialog.returnValue === "yes"); }));
}
