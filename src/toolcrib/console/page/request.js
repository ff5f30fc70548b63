// One request for approval: the card with a person's answer on it.
import { ago, fill, h, time, toast, value, whole } from "./dom.js";
import { argumentsForm, valueForm } from "./form.js";
import { answered, get, getWhole, Newest, on, post, state } from "./server.js";
import { askName, myName } from "./name.js";

const cards = new Map();
const ORIGINS = { user: "the user wrote it", trusted: "trusted, from", derived: "made of what the user wrote and of trusted results", untrusted: "untrusted, from", model: "only the model knows from where", chosen: "chosen after text of others was read, from", private: "private, from" };

/** Return the card of a request; one and the same while the page is open, so that nothing typed into it is lost. */
export function card(id) {
  if (!cards.has(id)) {
    if (cards.size > 50) cards.delete(cards.keys().next().value);
    cards.set(id, new Card(id));
  }
  const made = cards.get(id);
  made.load();
  return made.element;
}

on("inbox", (pending) => { for (const made of cards.values()) made.noticed(pending); });
on("events", () => { for (const made of cards.values()) if (made.element.isConnected && !made.settled) made.load(); });

/** Do with the card on the page what a shortcut says. */
export function act(what) {
  const element = document.querySelector(".request");
  const made = element && [...cards.values()].find((one) => one.element === element);
  if (made) made.act(what);
}

class Card {
  constructor(id) {
    this.id = id;
    this.view = null;
    this.panel = null;
    this.settled = false;
    this.newest = new Newest();
    this.head = h("div");
    this.body = h("div");
    this.foot = h("div");
    this.element = h("article.request", { aria: { label: "Request for approval" } }, this.head, this.body, this.foot);
  }

  async load() {
    const shows = this.newest.ask();
    let view;
    try {
      view = await get("api/request", { id: this.id });
    } catch (error) {
      if (!this.view) this.element.replaceChildren(h("p.bad", {}, error.message));
      return;
    }
    if (!shows()) return;
    this.view = view;
    this.settled = this.view.state === "used";
    this.draw();
  }

  noticed(pending) {
    if (this.view?.state === "pending" && (this.view.approvals_needed > 1 || this.view.answerers.length || !pending.includes(this.id))) this.load();
  }

  draw() {
    const { view } = this;
    fill(this.head, [view.tool, view.reason, view.principal, view.state, view.origin, view.answerers], () => [
      h("h2", {}, h("span.mono", {}, view.tool), ` ${titleOf(view)}`),
      view.reason ? h("p.reason", {}, view.reason) : null,
      originsOf(view.origins, view.run_id),
      h("p.muted", {}, "asked ", ago(view.created_at, " ago"), `, ${whole(view.created_at)}`, view.principal ? [" on behalf of ", h("b", {}, view.principal)] : null,
        view.expires_at && view.state === "pending" ? [" · refused at ", whole(view.expires_at), " unless it is approved before"] : null),
      view.state === "pending" && view.answerers.length ? h("ul.muted", { data: { shows: "answerers" } }, view.answerers.map((one) => h("li", {},
        one.now ? "may answer now: " : ["from ", whole(one.from), ": "], h("b", {}, one.group), one.people.length ? ` (${one.people.join(", ")})` : null))) : null,
      asking(view),
    ]);
    fill(this.body, [view.arguments, view.changes, view.metadata], () => [
      value({ ...view.arguments, label: "Final arguments" }, getWhole),
      view.changes.length ? h("section.part", {}, h("h3", {}, "Changed since the model asked"), h("ul.changes", {}, view.changes.map(change))) : null,
      view.changes_cut ? value(view.requested, getWhole) : null,
      view.metadata.map((one) => value(one, getWhole)),
    ].flat());
    fill(this.foot, [view.state, view.answer, view.approved_by, view.state === "pending" && view.ended], () => {
      if (view.state !== "pending") return this.outcome();
      return state.role === "viewer" ? h("p.muted", {}, "It waits for an answer. You may look here, and answer nothing.") : this.form();
    });
  }

  outcome() {
    const { answer } = this.view;
    const word = answer.kind === "denied" ? "Denied" : answer.kind === "done" ? "Said to be done" : answer.scope === "once" ? "Approved" : "Always allowed";
    const went = this.view.state === "used" ? (answer.kind === "denied" ? "The caller has the answer." : "The call went on.") : "The call has not gone on yet.";
    return h(`p.answered.is-${answer.kind}`, { role: "status" },
      h("b", {}, `${word}${answer.edited ? " with other arguments" : ""}`), ` by ${answer.by} at `, time(answer.at), ". ", went,
      answer.message ? h("q", {}, answer.message) : null);
  }

  form() {
    const problem = h("p.bad", { role: "alert" });
    const say = (error) => { problem.textContent = error ? error.message : ""; };
    const send = async (answer) => {
      say(null);
      const name = myName() || (await askName());
      if (!name) return;
      for (const button of this.foot.querySelectorAll("button")) button.disabled = true;
      try {
        this.view = await post("api/answer", { request: this.id, name, ...answer });
        this.newest.ask()();  // what was asked before is older than this answer
        if (this.view.state !== "pending") answered([this.id]);
        toast(`${this.view.tool}: ${this.view.answer?.kind ?? "approved, and needs another approver"}`);
      } catch (error) {
        say(error);
        for (const button of this.foot.querySelectorAll("button")) button.disabled = false;
        if (error.status === 409) this.load();
        return;
      }
      this.draw();
      this.foot.querySelector(".answered")?.scrollIntoView({ block: "nearest" });
    };
    const panels = { edit: () => this.editor(send), always: () => this.always(send), deny: () => this.denial(send), done: () => this.doneBefore(send) };
    const panel = h("div.panel", { hidden: true });
    const open = (name, focus = true) => {
      const same = this.panel === name && !panel.hidden;
      this.panel = same ? null : name;
      for (const button of buttons) button.setAttribute("aria-expanded", String(!same && button.dataset.panel === name));
      panel.hidden = same;
      if (same) return;
      panel.replaceChildren(panels[name]());
      if (focus) panel.querySelector("textarea, input, select")?.focus();
    };
    const button = (name, words, kind = "") =>
      h(`button${kind}`, { type: "button", data: { panel: name }, aria: { expanded: "false" }, onclick: () => open(name) }, words);
    const words = this.view.doubt_answers;  // of a call that may have run already: three answers, none of them preferred
    const approve = h(words ? "button" : "button.primary", { type: "button", data: { does: "approve" }, onclick: () => send({ answer: "approve" }) }, words ? words.approve : this.view.asked_by ? "Answer as it is" : "Approve");
    const several = this.view.approvals_needed > 1;
    const further = several && !words ? [] : words ? [button("done", `${words.done}…`)] : this.view.asked_by ? [button("edit", "Fill in…")] : [button("edit", "Edit…"), button("always", "Always allow…")];
    const buttons = [...further, words ? button("deny", `${words.deny}…`) : button("deny", "Deny…", ".danger")];
    this.act = (what) => {
      if (what === "approve") approve.focus();
      else if (buttons.some((one) => one.dataset.panel === what) && !(this.panel === what && !panel.hidden)) open(what);
    };
    const over = this.view.ended
      ? h("p.over", {}, `The call is over (${this.view.ended}), so an answer may have no effect. Deny it to have it out of the way.`) : null;
    const others = several ? h("p.over", {}, `It needs ${this.view.approvals_needed} approvers, who approve it as it is.`,
      this.view.approved_by.length ? ` Approved so far by ${this.view.approved_by.join(", ")}.` : "") : null;
    return h("div.answer", {}, over, others, h(words ? "div.row.doubt" : "div.row", {}, approve, ...buttons), panel, problem);
  }

  act() {}

  editor(send) {
    const { view } = this;
    const id = `edit-${this.id}`;
    const problems = h("ul.problems", { id: `${id}-problems`, aria: { live: "polite" } });
    const save = h("button.primary", { type: "submit" }, view.asked_by ? "Send this answer" : "Approve with these arguments");
    const place = h("div.fields");
    let text = () => "";
    let timer = 0;
    let latest = 0;
    const say = (found) => {
      problems.replaceChildren(...found.map((one) => h("li", {}, one)));
      place.querySelector("textarea")?.setAttribute("aria-invalid", String(found.length > 0));
      save.disabled = found.length > 0;
    };
    const check = async () => {
      const mine = ++latest;
      try {
        const found = await post("api/check", { request: this.id, arguments: text() });
        if (mine === latest) say(found.problems);
      } catch (error) {
        if (mine === latest) say([error.message]);
      }
    };
    const changed = () => { clearTimeout(timer); timer = setTimeout(check, 200); };
    const asText = (start) => {
      const area = h("textarea.mono", { id, spellcheck: false, autocapitalize: "off", rows: 8, value: start, aria: { describedby: `${id}-problems` }, oninput: changed });
      const size = () => { area.rows = Math.min(24, Math.max(4, area.value.split("\n").length + 1)); };
      if (view.arguments.cut) {
        area.disabled = true;
        getWhole(view.arguments.at).then((all) => { area.value = all; area.disabled = false; size(); });
      }
      size();
      place.replaceChildren(h("label", { htmlFor: id }, "Arguments, as JSON; they take the place of the model's"), area);
      text = () => area.value;
      return area;
    };
    const other = h("button.quiet", { type: "button", onclick: () => { other.hidden = true; asText(text()).focus(); } }, "Edit as JSON");
    if (view.form) {
      const form = argumentsForm(view.form, changed);
      place.replaceChildren(h("p.muted", {}, view.asked_by ? `${view.asked_by === view.tool ? "The tool" : `The server ${view.asked_by}`} asks for these during the call.` : "These arguments take the place of the model's."), form.element);
      text = form.text;
    } else {
      other.hidden = true;
      asText(view.arguments.text);
    }
    const form = h("form", {
      onsubmit: async (event) => {
        event.preventDefault();
        clearTimeout(timer);
        await check();
        if (!save.disabled) send({ answer: "approve", arguments: text() });
      },
    }, place, problems, h("div.row", {}, save, other));
    return onCtrlEnter(form);
  }

  denial(send) {
    const id = `deny-${this.id}`;
    const area = h("textarea", { id, rows: 2, maxLength: 10000, placeholder: "The model is shown this; it may be empty." });
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); send({ answer: "deny", message: area.value.trim() }); } },
      h("label", { htmlFor: id }, "What should the model read?"), area, h("div.row", {}, this.view.doubt_answers ? h("button", { type: "submit" }, this.view.doubt_answers.deny) : h("button.danger", { type: "submit" }, "Deny")));
    return onCtrlEnter(form);
  }

  doneBefore(send) {
    const result = valueForm(this.view.result);
    const form = h("form", { onsubmit: (event) => { event.preventDefault(); send({ answer: "done", result: result.text() }); } },
      h("p.muted", {}, "What did the call come to? The tool does not run again."), h("div.fields", {}, result.element),
      h("div.row", {}, h("button", { type: "submit" }, this.view.doubt_answers.done)));
    return onCtrlEnter(form);
  }

  always(send) {
    const { view } = this;
    const name = `scope-${this.id}`;
    const radio = (scope, words, checked) => h("label.choice", {}, h("input", { type: "radio", name, value: scope, checked }), words);
    const until = h("select", { id: `until-${this.id}` }, [["1", "one hour"], ["8", "eight hours"], ["24", "a day"], ["168", "a week"], ["720", "30 days"], ["", "until it is taken back"]]
      .map(([hours, words]) => h("option", { value: hours, selected: hours === "24" }, words)));
    const times = h("input.mono", { id: `times-${this.id}`, placeholder: "any time; mon-fri 09:00-17:00 Europe/Berlin", autocapitalize: "off", spellcheck: false });
    const whose = view.principal ? `${view.principal}'s calls` : "calls without a principal";
    const limits = this.limits();
    const meant = h("p.meant", { aria: { live: "polite" } });
    const allow = h("button.primary", { type: "submit" }, "Always allow");
    const chosen = () => ({ answer: "always", scope: form.elements[name].value, hours: until.value ? Number(until.value) : null, times: times.value, ...limits.chosen() });
    let latest = 0;
    const changed = async () => {
      limits.element.hidden = form.elements[name].value !== "within";
      const mine = ++latest;
      allow.disabled = true;
      try {
        const found = await post("api/meant", { request: this.id, ...chosen() });
        if (mine !== latest) return;
        meant.replaceChildren(found.problems.length ? h("span.problem", {}, found.problems.join(" ")) : `It allows: ${found.text}`);
        allow.disabled = found.problems.length > 0;
      } catch (error) {
        if (mine === latest) meant.replaceChildren(h("span.problem", {}, error.message));
      }
    };
    const form = h("form", {
      onsubmit: (event) => { event.preventDefault(); if (!allow.disabled) send(chosen()); }, oninput: changed,
    }, h("fieldset", {}, h("legend", {}, "From now on, let run without asking"),
      view.origins.length ? radio("values", [h("span.mono", {}, view.tool), " with these values of others, whatever else it is given"], true) : null,
      radio("arguments", [h("span.mono", {}, view.tool), " with exactly these arguments"], !view.origins.length),
      view.bounds.length ? radio("within", [h("span.mono", {}, view.tool), " with arguments within bounds"], false) : null,
      view.origins.length ? null : radio("tool", [h("span.mono", {}, view.tool), " with any arguments"], false)),
    limits.element,
    h("div.limits", {}, h("div.bound", {}, h("label", { htmlFor: until.id }, "For"), until),
      h("div.bound", {}, h("label", { htmlFor: times.id }, "At these times of the week"), times)),
    h("p.muted", {}, `It holds for ${whose}, and can be taken back under Standing.`), meant, h("div.row", {}, allow));
    changed();
    return form;
  }

  /** Return the fields that say what each argument may be and how often, and what was chosen in them. */
  limits() {
    const { view, id } = this;
    const bounds = view.bounds.map((one, at) => [one, h("input.mono", { id: `bound-${id}-${at}`, value: one.suggestion, placeholder: "exactly this", autocapitalize: "off", spellcheck: false })]);
    const uses = h("input", { id: `uses-${id}`, type: "number", min: 1, placeholder: "any number" });
    const most = h("input", { id: `most-${id}`, type: "number", min: 0, step: "any", placeholder: "any sum" });
    const numbers = view.bounds.filter((one) => one.is_number);
    const summed = h("select", { aria: { label: "Argument whose sum is limited" } }, numbers.map((one) => h("option", { value: one.name }, one.name)));
    const element = h("div.limits", { hidden: true },
      h("p.muted", {}, "Each argument may be: any, <= 50, 5..50, under /srv/x, one of \"a\", \"b\"; exactly this where it is empty."),
      bounds.map(([one, input]) => h("div.bound", {}, h("label", { htmlFor: input.id }, h("span.mono", {}, one.name), " ", h("span.muted", {}, one.value)), input)),
      h("div.bound", {}, h("label", { htmlFor: uses.id }, "For how many calls, this one too"), uses),
      numbers.length ? h("div.bound", {}, h("label", { htmlFor: most.id }, "Up to which sum of "), summed, most) : null);
    const chosen = () => (element.hidden ? {} : {
      within: Object.fromEntries(bounds.map(([one, input]) => [one.name, input.value])),
      uses: uses.value ? Number(uses.value) : null, total: most.value ? [summed.value, most.value] : null,
    });
    return { element, chosen };
  }
}

function onCtrlEnter(form) {
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); form.requestSubmit(); }
  });
  return form;
}

function change(line) {
  const [, path, before, after] = /^(.*?): (.*) -> (.*)$/s.exec(line) || [];
  if (path === undefined || before.includes(" -> ")) return h("li.mono", {}, line);
  return h("li.mono", {}, h("span.path", {}, path), " ", h("del", {}, before), " ", h("span", { aria: { label: "is now" } }, "→"), " ", h("ins", {}, after));
}

/** Return what a request asks, behind the tool's name. */
function titleOf(view) {
  if (view.in_doubt) return view.state === "pending" ? view.title.slice(view.tool.length + 1) : "was in doubt";
  return view.state === "pending" ? "needs your approval" : "needed approval";
}

export function callLink(view) {
  return `#/activity/call/${encodeURIComponent(view.call_id)}/${encodeURIComponent(view.run_id)}`;
}

/** Return where arguments come from, each with a link to the call whose result has the value. */
export function originsOf(origins, run) {
  return origins?.length ? h("ul.origins", {}, origins.map((from) =>
    h("li", {}, h("code", {}, from.value), " ", h("span.muted", {}, ORIGINS[from.kind] ?? from.kind), " ",
      from.call_id ? [h("a.mono", { href: activityLink({ source: "call", id: from.call_id, run_id: run }) }, from.tool), from.place ? ` ${from.place}` : ""] : null,
      " → ", h("span.mono", {}, from.path)))) : null;
}

/** Return what asks: the agent, program or session that the call is part of, and its run. */
function asking(view) {
  const parts = view.origin.map((one) => h("a", { href: activityLink(one) }, `${one.source} ${one.name === one.source ? one.id.slice(-8) : one.name}`));
  if (view.agent && !view.origin.some((one) => one.source === "agent")) parts.unshift(h("span", {}, `agent ${view.agent}`));
  const around = parts.flatMap((part) => [part, " › "]);
  return h("p.muted.asking", {}, "asked by ", around, h("a", { href: callLink(view) }, "the call"),
    view.run_id ? [" · run ", h("code", {}, view.run_id)] : null,
    view.conversation_id ? [" · conversation ", h("code", {}, view.conversation_id)] : null);
}

export function activityLink(one) {
  return `#/activity/${one.source}/${encodeURIComponent(one.id)}${one.source === "call" ? `/${encodeURIComponent(one.run_id)}` : ""}`;
}
