// The review: one card at a time, one key a decision. A decision is saved before the next card shows.

import { cardNode } from "./card.js";
import { el, percent } from "./dom.js";
import { Queue, said } from "./queue.js";

const KEYS = [["1 to 9", "choose a candidate"], ["n", "none of these"], ["s", "skip"], ["u", "undo"],
  ["j, k", "next and previous row"], ["?", "this help"]];
const OFTEN = 1000; // milliseconds between questions while the model learns
const SELDOM = 10000; // between questions whether another browser has decided something

export async function start(source) {
  const app = new Review(source);
  try {
    await app.begin();
  } catch (error) {
    document.body.append(el("p", { role: "alert" }, error.message));
  }
}

class Review {
  constructor(source) {
    this.source = source;
    this.busy = false;
    this.row = null;
    this.act = { decide: (action, label) => this.decide(action, label), open: (row) => this.open(row) };
  }

  async begin() {
    this.facts = await this.source.facts();
    document.title = `Review: ${this.facts.title}`;
    this.queue = new Queue(this.source, this.facts.reasons, (row) => this.open(row));
    this.build();
    document.addEventListener("keydown", (event) => this.key(event));
    this.tell(this.facts.status);
    await this.reload();
    if (this.source.canLearn) this.watch();
  }

  build() {
    const option = (value, text) => el("option", { value }, text);
    const choose = (name, options) => el("label", {}, el("span", {}, name),
      el("select", { "data-filter": name, onchange: () => this.reload() }, options));
    this.filters = el("div", { class: "filters" },
      choose("rows", ["open", "decided", "skipped", "all"].map((state) => option(state, state))),
      choose("reason", [option("", "every reason"), ...Object.entries(this.facts.reasons).map(([k, v]) => option(k, v))]),
      choose("class", [option("", "every class"), ...this.facts.classes.map((label) => option(label, label))]));
    this.progress = el("progress", { max: this.facts.rows, value: 0, "aria-label": "decided rows" });
    this.counts = el("p", { class: "counts" });
    this.message = el("p", { class: "message", role: "status" });
    this.learning = el("div", { class: "learning" });
    this.main = el("main", { id: "card" });
    this.help = this.helpDialog();
    const learn = this.source.canLearn
      ? el("button", { class: "learn", onclick: () => this.learn() }, "Learn again")
      : el("button", { class: "learn", onclick: () => this.source.download() }, "Download decisions");
    document.body.replaceChildren(
      el("header", { class: "top" },
        el("h1", {}, "Review ", el("bdi", {}, this.facts.title)), el("div", { class: "state" }, this.progress, this.counts),
        el("div", { class: "tools" },
          el("button", { class: "toggle", "aria-expanded": "false", onclick: (event) => this.toggle(event.currentTarget) }, "Queue"),
          learn, el("button", { "aria-keyshortcuts": "?", onclick: () => this.help.showModal() }, "Help"))),
      el("div", { class: "body" }, el("nav", { class: "side", "aria-label": "rows" }, this.filters, this.queue.node),
        el("div", { class: "middle" }, this.learning, this.main)),
      el("footer", { class: "bar-bottom" }, this.message,
        this.button("n", "None of these", () => this.decide("none")), this.button("s", "Skip", () => this.decide("skip")),
        this.button("u", "Undo", () => this.undo())), this.help);
  }

  button(key, text, act) {
    return el("button", { "aria-keyshortcuts": key, onclick: act }, el("kbd", { "aria-hidden": "true" }, key), text);
  }

  helpDialog() {
    const rows = KEYS.map(([key, text]) => el("tr", {}, el("th", { scope: "row" }, el("kbd", {}, key)), el("td", {}, text)));
    const dialog = el("dialog", { "aria-labelledby": "help-title" }, el("h2", { id: "help-title" }, "Keys"),
      el("table", {}, el("tbody", {}, rows)),
      el("p", {}, this.source.canLearn
        ? "Every decision is on the disk before the next row shows."
        : "Decisions stay in this page until they are downloaded."),
      el("button", { onclick: () => dialog.close() }, "Close"));
    return dialog;
  }

  toggle(button) {
    const open = document.body.classList.toggle("with-queue");
    button.setAttribute("aria-expanded", String(open));
    this.queue.draw();
  }

  // --- cards ---

  async reload(row) {
    const [state, reason, label] = [...this.filters.querySelectorAll("select")].map((each) => each.value);
    await this.queue.load({ state, reason, label });
    const first = await this.queue.at(0);
    await this.open(row ?? first?.row ?? null);
  }

  async open(row, focus = false) {
    this.row = row;
    this.queue.show(row);
    if (row === null) {
      const more = this.filters.querySelector("select").value === "open" ? "Nothing is left to decide here." : "There are no such rows.";
      this.main.replaceChildren(el("p", { class: "empty" }, more));
      this.card = null;
      return;
    }
    document.body.classList.remove("with-queue");
    const card = await this.source.card(row).catch((error) => this.say(error.message, true));
    if (this.row !== row || !card) return;
    this.card = card;
    this.main.replaceChildren(cardNode(card, this.facts, this.source, this.act));
    this.main.scrollTop = 0;
    if (focus) this.main.querySelector("h2").focus({ preventScroll: true });
  }

  async move(step) {
    const next = await this.queue.at(this.queue.indexOf(this.row) + step);
    if (next) await this.open(next.row, true);
  }

  // --- decisions ---

  async decide(action, label) {
    if (this.busy || !this.card) return; // a key that comes before the next card shows must not decide it
    this.work(true);
    const { row, version } = this.card;
    try {
      const index = this.queue.indexOf(row);
      const answer = await this.source.decide(row, action, label, version);
      this.queue.settle(row, answer);
      if (answer.meanwhile) this.say(`Another browser has decided this row meanwhile: ${said(answer.decision) || "it was taken back"}.`, true);
      else this.say(action === "skip" ? "Skipped." : `Saved: ${action === "none" ? "none of these" : label}.`);
      if (answer.status) this.tell(answer.status);
      const stays = this.queue.indexOf(row) >= 0 ? 1 : 0;
      const next = await this.queue.at(Math.max(index, 0) + stays) || await this.queue.at(0);
      await this.open(next && next.row !== row ? next.row : null, true);
    } catch (error) {
      this.say(`Not saved: ${error.message}`, true);
    } finally {
      this.work(false);
    }
  }

  work(busy) {
    this.busy = busy;
    this.main.setAttribute("aria-busy", String(busy));
  }

  async undo() {
    if (this.busy) return;
    this.work(true);
    try {
      const own = this.card && this.card.state === "decided" ? this.card.row : undefined;
      const answer = await this.source.undo(own);
      if (answer.row === null) this.say("There is nothing of yours to undo.");
      else {
        this.say("Taken back.");
        await this.reload(answer.row);
      }
      this.tell(answer.status);
    } catch (error) {
      this.say(`Not undone: ${error.message}`, true);
    } finally {
      this.work(false);
    }
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || this.help.open) return;
    if (event.target instanceof HTMLSelectElement || event.target instanceof HTMLInputElement) return;
    const simple = { n: () => this.decide("none"), s: () => this.decide("skip"), u: () => this.undo(),
      j: () => this.move(1), k: () => this.move(-1), "?": () => this.help.showModal() };
    const number = /^[1-9]$/.test(event.key) ? Number(event.key) - 1 : null;
    if (number !== null && this.card?.candidates[number]) this.decide("label", this.card.candidates[number].label);
    else if (simple[event.key]) simple[event.key]();
    else return;
    event.preventDefault();
  }

  // --- what is told ---

  say(text, wrong = false) {
    this.message.textContent = text;
    this.message.classList.toggle("wrong", wrong);
  }

  tell(status) {
    this.status = status;
    this.progress.value = status.decided;
    const agreed = status.labelled ? `, the model agrees with ${status.agreed} of ${status.labelled}` : "";
    this.counts.textContent = `${status.decided} of ${status.rows} decided${agreed}`;
    if (this.source.canLearn) this.tellLearning(status.learning, status.changes);
  }

  tellLearning(learning, changes) {
    const told = JSON.stringify([learning, changes]);
    if (told === this.toldLearning) return;
    this.toldLearning = told;
    const parts = [];
    if (learning.running) {
      const left = learning.left === null ? "" : `, about ${Math.ceil(learning.left)} s left`;
      parts.push(el("p", {}, `Learning again: ${percent(learning.share)}${left} `,
        el("progress", { max: 1, value: learning.share, "aria-label": "learning" })));
    }
    if (learning.error) parts.push(el("p", { class: "wrong" }, `Learning failed: ${learning.error}`));
    if (changes) parts.push(changesNode(changes, (row) => this.open(row)));
    this.learning.replaceChildren(...parts);
  }

  async learn() {
    try {
      const answer = await this.source.learn();
      this.say(answer.started ? "Learning again; go on meanwhile." : "It is learning already.");
      this.tell(answer.status);
      this.watch();
    } catch (error) {
      this.say(error.message, true);
    }
  }

  watch() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.look(), this.status.learning.running ? OFTEN : SELDOM);
  }

  async look() {
    try {
      const before = this.status;
      const status = await this.source.status();
      const learned = before.learning.running && !status.learning.running;
      this.tell(status);
      if (learned && !status.learning.error) {
        this.say("Learned; the queue is ranked anew.");
        await this.reload();
      } else if (!this.busy && status.entries !== before.entries) await this.queue.load();
    } catch (error) {
      this.say(error.message, true);
    }
    this.watch();
  }
}

function changesNode(changes, open) {
  const { rows, before, after } = changes.accuracy;
  const right = rows && before !== null ? ` Held out and without the sets, the model is right about ${percent(before)} of ${rows} decided ${rows === 1 ? "row" : "rows"} before and ${percent(after)} after.` : "";
  const flips = changes.flips.map((each) => el("li", {},
    el("button", { class: "small", onclick: () => open(each.row) }, each.name), ` ${each.before} → ${each.after}`));
  return el("details", { class: "changes" },
    el("summary", {}, `Learned from ${changes.decisions} ${changes.decisions === 1 ? "decision" : "decisions"}: ${changes.flipped} ${changes.flipped === 1 ? "answer" : "answers"} changed.${right}`),
    el("p", { class: "note" }, `The new model is ${changes.model}, beside the old one.`), el("ul", {}, flips));
}
