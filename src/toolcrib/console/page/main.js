// The frame: which view is shown, logging in, shortcuts, whether the server is there.
import { h, number, tick, toast } from "./dom.js";
import { Activities, Timeline } from "./activity.js";
import { address } from "./filters.js";
import { Grants, Inbox } from "./inbox.js";
import { act } from "./request.js";
import { askName, drawName } from "./name.js";
import { Servers } from "./gateways.js";
import { Work } from "./work.js";
import { listen, on, post, refresh, state } from "./server.js";

const VIEWS = { inbox: Inbox, activity: Activities, timeline: Timeline, grants: Grants, work: Work, servers: Servers };
const main = document.getElementById("main");
let view = null;
let shown = "";
let started = false;

function route() {
  if (!started) return;
  const [name, ...rest] = address().path;
  const wanted = name in VIEWS ? name : "inbox";
  if (wanted !== shown) {
    view?.leave();
    view = new VIEWS[wanted]();
    main.replaceChildren(view.element);
    shown = wanted;
  }
  for (const link of document.querySelectorAll("nav a")) {
    if (link.dataset.view === wanted) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  view.show(...rest);
}

function count() {
  const n = state.pending.length;
  const badge = document.getElementById("pending");
  badge.textContent = number(n);
  badge.hidden = n === 0;
  badge.setAttribute("aria-label", `${n} pending`);
  document.title = n ? `(${n}) Toolcrib console` : "Toolcrib console";
}

function live(problem) {
  const place = document.getElementById("live");
  place.textContent = problem || "live";
  place.classList.toggle("off", Boolean(problem));
}

function login(ways = "token") {
  if (document.querySelector("form.login")) return;
  started = false;
  view?.leave();
  view = null;
  shown = "";
  const field = h("input", { id: "token", type: "password", autocomplete: "current-password", required: true });
  const problem = h("p.bad", { role: "alert" });
  main.replaceChildren(h("form.login", {
    onsubmit: async (event) => {
      event.preventDefault();
      problem.textContent = "";
      try {
        await post("api/login", { token: field.value });
      } catch (error) {
        problem.textContent = error.message;
        field.select();
        return;
      }
      main.replaceChildren();
      start();
    },
  }, h("h1", {}, "Log in"),
  ways === "token" ? null : h("p", {}, h("a", { id: "elsewhere", href: "login/start" }, "Log in with your account")),
  ...(ways === "login" ? [] : [h("p.muted", {}, "This console asks for the token that it was started with."),
    h("label", { htmlFor: "token" }, "Token"), field, problem, h("div.row", {}, h("button.primary", { type: "submit" }, "Log in"))])));
  live("logged out");
  (document.getElementById("elsewhere") ?? field).focus();
}

async function start() {
  try {
    await refresh();
  } catch (error) {
    if (error.status !== 401) { live("reconnecting"); setTimeout(start, 1000); }
    return;
  }
  started = true;
  document.getElementById("logout").hidden = !state.token;
  document.getElementById("end-sessions").hidden = state.role !== "administrator";
  document.getElementById("work-link").hidden = !state.work;
  document.getElementById("servers-link").hidden = !state.servers;
  drawName();
  count();
  listen();
  route();
}

function typing(target) {
  return target.matches?.("input, textarea, select, [contenteditable]");
}

function step(by) {
  const links = [...document.querySelectorAll(".side .row-link")];
  if (!links.length) return;
  let at = links.indexOf(document.activeElement);
  if (at < 0) at = links.findIndex((one) => one.getAttribute("aria-current"));
  const next = links[at < 0 ? (by > 0 ? 0 : links.length - 1) : Math.min(links.length - 1, Math.max(0, at + by))];
  next.focus();
}

function back() {
  const [name] = address().path;
  const key = document.querySelector(".side .row-link[aria-current]")?.dataset.key;
  location.hash = `#/${name in VIEWS ? name : "inbox"}${location.hash.match(/\?.*/) ?? ""}`;
  if (key) setTimeout(() => document.querySelector(`.side [data-key="${CSS.escape(key)}"]`)?.focus());
}

const SHORTCUTS = {
  1: () => { location.hash = "#/inbox"; },
  2: () => { location.hash = "#/activity"; },
  3: () => { location.hash = "#/timeline"; },
  4: () => { location.hash = "#/grants"; },
  5: () => { if (state.work) location.hash = "#/work"; },
  6: () => { if (state.servers) location.hash = "#/servers"; },
  j: () => step(1),
  k: () => step(-1),
  a: () => act("approve"),
  e: () => act("edit"),
  d: () => act("deny"),
  x: () => view.toggle?.(),
  "/": () => {
    if (!document.getElementById("search")) location.hash = "#/activity";
    setTimeout(() => document.getElementById("search")?.focus(), 30);
  },
  "?": () => document.getElementById("help").showModal(),
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.key === "Escape") {
    if (typing(event.target)) event.target.blur();
    else back();
    return;
  }
  if (typing(event.target) || !started || !(event.key in SHORTCUTS)) return;
  event.preventDefault();
  SHORTCUTS[event.key]();
});
document.getElementById("help-button").addEventListener("click", () => document.getElementById("help").showModal());
document.getElementById("logout").addEventListener("click", () =>
  post("api/logout", {}).then(() => location.reload(), (error) => toast(error.message, true)));

const endSessions = document.getElementById("sessions-dialog");
const person = document.getElementById("sessions-person");
const sessionsProblem = document.getElementById("sessions-problem");
document.getElementById("end-sessions").addEventListener("click", () => {
  person.value = sessionsProblem.textContent = "";
  endSessions.showModal();
});
document.getElementById("sessions-cancel").addEventListener("click", () => endSessions.close());
document.getElementById("sessions-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const name = person.value.trim();
  post("api/sessions/end", { person: name }).then(
    () => { endSessions.close(); toast(`The sessions of ${name} have ended.`); },
    (error) => { sessionsProblem.textContent = error.message; });
});

document.getElementById("who").addEventListener("click", () => askName());
addEventListener("hashchange", route);
on("inbox", count);
on("live", live);
on("login", login);
on("reset", () => toast("Much has happened meanwhile; this is how it stands."));
setInterval(tick, 1000);
start();
