// Durable work: its workers, its queues, and its turns and programs, which can be cancelled, resumed and handed over.
import { ago, beginning, fill, h, number, status, toast } from "./dom.js";
import { Filters, later } from "./filters.js";
import { activityLink, card } from "./request.js";
import { get, on, post, state } from "./server.js";

const AGAIN = 3_000;
const PAGE = 50;
const LIVE = ["delayed", "waiting", "running", "paused"];
const STOPPED = ["cancelled", "given up"];
const DOTS = { done: "completed", failed: "failed", rejected: "rejected", "given up": "failed", lost: "failed", cancelled: "cancelled", paused: "suspended", running: "running", recovered: "cancelled", "in doubt": "suspended" };

/** The view of durable work. */
export class Work {
  constructor() {
    this.start = 0;
    const soon = later(() => this.load());
    this.filters = new Filters({ state: "", queue: "" }, () => { this.start = 0; soon(); });
    this.filters.read();
    this.workers = h("div");
    this.queues = h("div");
    this.list = h("div");
    this.element = h("section.page", { aria: { label: "Durable work" } },
      h("h1", {}, "Workers"), this.workers, h("h1", {}, "Queues"), this.queues,
      h("h1", {}, "Turns and programs"),
      h("form.row", { role: "search", onsubmit: (event) => event.preventDefault() }, this.filters.select("state", "State", []), this.filters.select("queue", "Queue", [])), this.list);
    this.off = on("events", soon);
    this.timer = setInterval(() => this.load(), AGAIN);
  }

  show() { this.filters.read(); this.load(); }

  async load() {
    const mine = (this.asked = (this.asked || 0) + 1);
    let found;
    try {
      found = await get("api/work", { ...this.filters.values, start: this.start, limit: PAGE });
    } catch (error) {
      if (mine === this.asked) fill(this.list, error.message, () => h("p.bad", {}, error.message));
      return;
    }
    if (mine !== this.asked) return;
    this.filters.choose("state", [["", "any state"], ...found.states.map((one) => [one, one])]);
    this.filters.choose("queue", [["", "any queue"], ...found.queues.map((one) => [one.name, one.name])]);
    fill(this.workers, found.workers, () => (found.workers.length ? h("ul.cards", {}, found.workers.map((one) => this.worker(one))) : h("p.empty", {}, "No worker has worked here.")));
    fill(this.queues, found.queues, () => (found.queues.length ? h("ul.cards", {}, found.queues.map(queue)) : h("p.empty", {}, "Nothing waits, and nothing runs.")));
    fill(this.list, [found.work, found.more, this.start], () => [
      found.work.length ? h("ul.cards", {}, found.work.map((one) => this.work(one))) : h("p.empty", {}, "There is no such work."),
      h("div.row", {}, this.start ? this.turn(-PAGE, "Newer") : null, found.more ? this.turn(PAGE, "Older") : null),
    ]);
  }

  /** A button that shows the next or the last page of the list. */
  turn(by, words) { return h("button.quiet", { type: "button", onclick: () => { this.start = Math.max(0, this.start + by); this.load(); } }, words); }

  worker(one) {
    const about = [`${number(one.pending)} in hand`, `process ${one.pid} on ${one.host}`];
    return h("li.grant", {}, h("div", {}, h("b.mono", {}, one.id), " ", mark(one.state), h("p.muted", {}, about.join(" · "), " · seen ", ago(iso(one.seen_at), " ago"))),
      one.state === "lost" ? this.button("recover", one.id, "Hand over", `Hand the work of ${one.id} over? If it comes back, nothing that it does is recorded.`) : null);
  }

  work(one) {
    const leads = one.kind === "turn" || one.kind === "program" ? { href: activityLink({ source: one.kind, id: one.id }) } : {};
    const about = [one.queue, one.worker && `worker ${one.worker}`, one.attempts > 1 && `begun ${one.attempts} times`, one.conversation_id && `conversation ${one.conversation_id}`].filter(Boolean);
    return h("li.grant", {}, h("div", {}, h("a", leads, h("span.kind", {}, one.kind), " ", h("span.mono", {}, one.what || one.id)), " ", mark(one.state), one.in_doubt ? [" ", mark("in doubt")] : null,
      h("p.muted", {}, about.join(" · "), one.created_at ? [" · since ", ago(iso(one.created_at), " ago")] : null), one.error ? h("p.bad", {}, beginning(one.error, 300)) : null),
    one.waits_for?.length ? h("button", { type: "button", onclick: () => this.ask(one.waits_for) }, state.role === "viewer" ? "Request" : one.waits_for.length > 1 ? `Answer ${number(one.waits_for.length)}…` : "Answer…") : null,
    LIVE.includes(one.state) ? this.button("cancel", one.id, "Cancel", `Cancel ${one.what || one.id}? What it did stays done.`) : null,
    STOPPED.includes(one.state) ? this.button("resume", one.id, "Resume", `Let ${one.what || one.id} go on? What it has recorded is not done again.`) : null,
    one.state === "failed" ? this.button("retry", one.id, "Retry", `Retry ${one.what || one.id}? What it is known to have done is not done again; a call that had begun asks a person.`) : null);
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
