// Where cards come from and decisions go in a page without a server: from the page itself, and into a file.

const KEPT = JSON.parse(document.getElementById("kept").textContent);
const ENTRIES = [];
const BY_ROW = new Map(KEPT.cards.map((card) => [card.row, card]));

function stateOf(row) {
  const mine = ENTRIES.filter((entry) => entry.row === row);
  const last = mine.at(-1);
  const open = !last || last.action === "undo";
  const decision = open || last.action === "skip" ? null : { action: last.action, label: last.label ?? null };
  return { state: open ? "open" : decision ? "decided" : "skipped", decision, version: mine.length };
}

function status() {
  const states = KEPT.cards.map((card) => [card, stateOf(card.row)]);
  const labelled = states.filter(([, state]) => state.decision && state.decision.action === "label");
  return {
    rows: KEPT.cards.length,
    decided: states.filter(([, state]) => state.state === "decided").length,
    skipped: states.filter(([, state]) => state.state === "skipped").length,
    labelled: labelled.length,
    agreed: labelled.filter(([card, state]) => String(card.answer) === String(state.decision.label)).length,
    entries: ENTRIES.length,
  };
}

function add(entry) {
  ENTRIES.push({ ...entry, at: new Date().toISOString(), by: "page" });
  return { row: entry.row, ...stateOf(entry.row), status: status() };
}

function download() {
  const lines = ENTRIES.map((entry) => `${JSON.stringify(entry)}\n`).join("");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines], { type: "application/x-ndjson" }));
  link.download = `${KEPT.facts.title}.decisions.jsonl`;
  link.click();
  SAVED.count = ENTRIES.length;
}

const SAVED = { count: 0 };
window.addEventListener("beforeunload", (event) => {
  if (ENTRIES.length > SAVED.count) event.preventDefault(); // decisions would be lost
});

export const source = {
  canLearn: false,
  facts: async () => ({ ...KEPT.facts, rows: KEPT.cards.length, status: status() }),
  status: async () => status(),
  queue: async (filter, start, count) => {
    const all = KEPT.cards.map((card) => ({ ...card, ...stateOf(card.row) })).filter((card) =>
      (filter.state === "all" || card.state === filter.state) && (!filter.reason || card.reason === filter.reason)
      && (!filter.label || [card.answer, card.prediction].some((label) => String(label) === filter.label)));
    return { total: all.length, start, items: all.slice(start, start + count) };
  },
  card: async (row) => {
    const card = BY_ROW.get(row);
    if (!card) throw new Error("this row is not in the page");
    return { ...card, image: card.image && Boolean(KEPT.images[row]), ...stateOf(row) };
  },
  decide: async (row, action, label) => {
    const candidates = BY_ROW.get(row).candidates.map((each) => each.label);
    return add({ row, action, ...(action === "label" ? { label } : {}), candidates });
  },
  undo: async (row) => {
    const last = row ?? ENTRIES.filter((entry) => stateOf(entry.row).state !== "open").at(-1)?.row;
    return last === undefined ? { row: null, status: status() } : add({ row: last, action: "undo" });
  },
  download,
  image: (row) => KEPT.images[row] || "data:,",
};
