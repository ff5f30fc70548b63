// The servers behind gateways: which are up, which are down and when they are tried again, and what waits for a person.
import { ago, beginning, fill, h, number, status } from "./dom.js";
import { get } from "./server.js";

const AGAIN = 3_000;
const DOTS = { up: "completed", "in part": "suspended", down: "failed", silent: "other" };

/** The view of servers. */
export class Servers {
  constructor() {
    this.list = h("div");
    this.element = h("section.page", { aria: { label: "Servers" } }, h("h1", {}, "Servers"), this.list);
    this.timer = setInterval(() => this.load(), AGAIN);
  }

  show() { this.load(); }

  async load() {
    let found;
    try {
      found = (await get("api/servers")).gateways;
    } catch (error) {
      fill(this.list, error.message, () => h("p.bad", {}, error.message));
      return;
    }
    fill(this.list, found.map(({ seen_at: _, ...rest }) => rest), () => (found.length ? found.map(gateway) : h("p.empty", {}, "No gateway runs: `toolcrib serve` with a file of servers is one.")));
  }

  leave() { clearInterval(this.timer); }
}

function gateway(one) {
  return h("div", {}, h("h2", {}, one.gateway), one.silent ? h("p.bad", {}, "It has said nothing for a while, and may have been killed: last seen ", ago(one.seen_at, " ago"), ".") : null,
    h("ul.cards", {}, one.servers.map((server) => card(server, one.silent))));
}

function card(one, silent) {
  const about = [h("span", {}, `${number(one.tools)} ${one.tools === 1 ? "tool" : "tools"}`)];
  if (one.since) about.push(h("span", {}, ` · ${one.state === "down" ? "down" : "up"} for `, ago(one.since)));
  if (one.next_try) about.push(h("span", {}, ` · tried again at ${new Date(one.next_try).toLocaleTimeString()}`));
  const word = silent ? "silent" : one.state;
  return h("li.grant", {}, h("div", {}, h("b.mono", {}, one.server), " ", status(DOTS[word] ?? "other", "", [word]), h("p.muted", {}, about),
    one.reason ? h("p.bad", {}, beginning(one.reason, 600)) : null,
    one.last_error && one.last_error !== one.reason ? h("p.muted", {}, `Its last error: ${beginning(one.last_error, 600)}`) : null,
    one.changed.length ? h("p", {}, `New or changed, and waiting for a person when it is called: ${one.changed.join(", ")}`) : null));
}
