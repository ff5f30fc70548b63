// The waterfall of a run: a bar for each call in it, under what made it; a row unfolds to the values of its call.
import { duration, fill, h, number, status, value } from "./dom.js";
import { activityLink } from "./request.js";
import { get, getWhole, Newest } from "./server.js";

/** A part of the details that loads when it is unfolded, and again when `load` says so. */
export class Waterfall {
  constructor(asked) {
    this.asked = asked;
    this.body = h("div");
    this.newest = new Newest();
    this.open = new Set();
    this.element = h("details.part", { ontoggle: () => this.load() }, h("summary", {}, "Waterfall"), this.body);
  }

  async load() {
    if (!this.element.open) return;
    const shows = this.newest.ask();
    let found;
    try { found = await get("api/waterfall", this.asked); } catch (error) { return void fill(this.body, error.message, () => h("p.bad", {}, error.message)); }
    if (shows()) fill(this.body, found, () => this.draw(found));
  }

  draw({ rows, more }) {
    const now = Date.now();
    const end = (one) => (one.ended_at ? Math.max(Date.parse(one.ended_at), Date.parse(one.started_at) + (one.duration_ms ?? 0)) : now);
    const from = Math.min(...rows.map((one) => Date.parse(one.started_at)));
    const span = Math.max(1, Math.max(...rows.map(end)) - from);
    return [
      h("p.muted", {}, `${number(rows.length - 1)}${more ? " latest" : ""} inside, over ${duration(span)}`),
      h("ol.waterfall", {}, rows.map((one) => this.row(one, (Date.parse(one.started_at) - from) / span, (end(one) - Date.parse(one.started_at)) / span))),
    ];
  }

  row(one, start, length) {
    const bar = h(`span.span.is-${one.status}`);
    bar.style.setProperty("--start", start.toFixed(5));
    bar.style.setProperty("--length", length.toFixed(5));
    const name = h("span.mono.name", {}, one.name === one.source ? one.id : one.name);
    name.style.setProperty("--depth", one.depth);
    const values = h("div.values");
    const key = JSON.stringify([one.source, one.id, one.run_id]);
    const unfold = async () => {
      if (!row.open) return void this.open.delete(key);
      this.open.add(key);
      if (values.firstChild) return;
      try {
        const view = await get("api/activity", { source: one.source, id: one.id, run: one.run_id });
        values.replaceChildren(...view.values.map((part) => value(part, getWhole)), h("a", { href: activityLink(one) }, "All of it"));
      } catch (error) { values.replaceChildren(h("p.bad", {}, error.message)); }
    };
    const took = one.ended_at ? duration(one.duration_ms ?? Date.parse(one.ended_at) - Date.parse(one.started_at)) : one.status;
    const row = h("details", { ontoggle: unfold }, h("summary", { aria: { label: `${one.source} ${one.name}, ${one.status}, ${took}, level ${one.depth + 1}` } },
      name, h("span.track", {}, bar), h("span.took", {}, took), one.status === "completed" ? h("span") : status(one.status)), values);
    row.open = this.open.has(key);
    return h("li", {}, row);
  }
}
