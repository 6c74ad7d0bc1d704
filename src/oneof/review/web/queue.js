// The queue: a list of any length of which only the visible part exists.

import { el, percent } from "./dom.js";

const HEIGHT = 60; // pixels of a line
const PAGE = 100; // lines that are fetched together

export class Queue {
  constructor(source, reasons, onChoose) {
    this.source = source;
    this.reasons = reasons;
    this.onChoose = onChoose;
    this.filter = { state: "open", reason: "", label: "" };
    this.inner = el("div", { class: "lines", role: "list" });
    this.node = el("div", { class: "queue", tabindex: "0", role: "region", "aria-label": "queue" }, this.inner);
    this.node.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.node);
    this.clear();
  }

  clear() {
    this.items = [];
    this.total = 0;
    this.pages = new Map();
    this.generation = (this.generation || 0) + 1;
  }

  async load(filter = this.filter) {
    this.filter = filter;
    this.clear();
    await this.fetch(0);
    this.node.scrollTop = 0;
    this.draw();
  }

  fetch(page) {
    if (!this.pages.has(page)) this.pages.set(page, this.fetchNow(page, this.generation));
    return this.pages.get(page);
  }

  async fetchNow(page, generation) {
    const part = await this.source.queue(this.filter, page * PAGE, PAGE);
    if (generation !== this.generation) return;
    this.total = part.total;
    part.items.forEach((item, i) => { this.items[part.start + i] = item; });
  }

  async at(index) {
    if (index < 0 || index >= this.total) return null;
    if (!this.items[index]) await this.fetch(Math.floor(index / PAGE));
    return this.items[index] || null;
  }

  indexOf(row) {
    return this.items.findIndex((item) => item && item.row === row);
  }

  // A row that leaves the filter goes, so that places here stay those of the server.
  settle(row, state) {
    const index = this.indexOf(row);
    if (index < 0) return;
    Object.assign(this.items[index], state);
    if (this.filter.state !== "all" && this.filter.state !== state.state) {
      this.items.splice(index, 1);
      this.total -= 1;
      this.pages.clear();
      for (let page = 0; page * PAGE < this.total; page++) {
        const end = Math.min((page + 1) * PAGE, this.total);
        let whole = true;
        for (let i = page * PAGE; i < end; i++) whole = whole && Boolean(this.items[i]);
        if (whole) this.pages.set(page, Promise.resolve());
      }
    }
    this.draw();
  }

  show(row) {
    this.chosen = row;
    const top = this.indexOf(row) * HEIGHT;
    if (top >= 0 && (top < this.node.scrollTop || top + HEIGHT > this.node.scrollTop + this.node.clientHeight)) {
      this.node.scrollTop = Math.max(top - HEIGHT, 0);
    }
    this.draw();
  }

  draw() {
    this.inner.style.height = `${this.total * HEIGHT}px`;
    const first = Math.max(Math.floor(this.node.scrollTop / HEIGHT) - 5, 0);
    const last = Math.min(first + Math.ceil(this.node.clientHeight / HEIGHT) + 10, this.total);
    const lines = [];
    for (let index = first; index < last; index++) {
      const item = this.items[index];
      if (item) lines.push(this.line(item, index));
      else this.fetch(Math.floor(index / PAGE)).then(() => this.drawSoon());
    }
    const focused = document.activeElement?.dataset?.row;
    this.inner.replaceChildren(...lines);
    if (focused !== undefined) {
      this.inner.querySelector(`button[data-row="${Number(focused)}"]`)?.focus({ preventScroll: true });
    }
  }

  drawSoon() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.draw());
  }

  line(item, index) {
    const reason = this.reasons[item.reason] || "nothing speaks against it";
    const decided = item.state === "decided" ? `decided: ${said(item.decision)}` : item.state;
    const line = el(
      "button",
      { "data-row": item.row, "aria-current": item.row === this.chosen ? "true" : false,
        onclick: () => this.onChoose(item.row) },
      el("span", { class: "what" }, item.name),
      el("span", { class: "chance", title: "chance that the answer is wrong" }, percent(item.wrong)),
      el("span", { class: "reason" }, item.state === "open" ? reason : decided),
    );
    const entry = el("div", { role: "listitem", class: "line", "aria-posinset": index + 1, "aria-setsize": this.total }, line);
    entry.style.transform = `translateY(${index * HEIGHT}px)`;
    return entry;
  }
}

export function said(decision) {
  if (!decision) return "";
  return decision.action === "none" ? "none of these" : String(decision.label);
}
