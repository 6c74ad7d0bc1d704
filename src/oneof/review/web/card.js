// The card of a row: what it is, why it is here, and what can be decided.

import { el, percent } from "./dom.js";
import { said } from "./queue.js";

export function cardNode(card, facts, source, act) {
  const inside = new Set(card.candidates.map((each) => String(each.label)));
  const left = el("div", { class: "sight" }, sight(card, source), features(card));
  const right = el("div", { class: "decide" },
    choices(card, act),
    others(card, facts, inside, act),
    el("p", { class: "note" }, "Without the set the model says ", el("strong", {}, card.prediction),
      `; chance that the truth is outside: ${percent(card.outside)}.`),
    votes(card));
  return el("article", { class: "card", "aria-labelledby": "card-name" },
    el("header", {},
      el("h2", { id: "card-name", tabindex: "-1" }, card.name),
      el("p", { class: "risk" }, `chance that ${quoted(card.answer)} is wrong: ${percent(card.wrong)}`),
      card.state === "decided" ? el("p", { class: "decided" }, `decided: ${said(card.decision)} (u takes it back)`) : null,
      el("ul", { class: "why" }, card.why.map((text) => el("li", {}, text)))),
    el("div", { class: "columns" }, left, right),
    neighbours(card, source, act));
}

function quoted(label) {
  return `“${label}”`;
}

function sight(card, source) {
  if (card.image) {
    const image = el("img", { class: "picture", src: source.image(card.row), alt: `image of ${card.name}` });
    image.addEventListener("error", () => {
      image.replaceWith(el("p", { class: "note" }, "The image cannot be shown: it is damaged, missing, or outside the folder of the table."));
    });
    if (card.text === null) return image;
    return el("div", {}, image, el("p", { class: "text" }, card.text));
  }
  return card.text === null ? null : el("p", { class: "text" }, card.text);
}

function features(card) {
  if (!card.features.length) return null;
  const rows = card.features.map((each) => el("tr", {},
    el("th", { scope: "row" }, each.name), el("td", {}, each.value), el("td", {}, each.mean),
    el("td", {}, each.effect === null ? "" : each.effect.toFixed(2))));
  return el("table", { class: "features" },
    el("caption", {}, "Features that matter most for the answer"),
    el("thead", {}, el("tr", {}, ["feature", "value", "mean", "effect"].map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows));
}

function choices(card, act) {
  const chosen = card.decision ? said(card.decision) : null;
  const buttons = card.candidates.map((each, i) => choice(each, i < 9 ? i + 1 : null, chosen, act));
  return el("div", { class: "choices", role: "group", "aria-label": "candidates" }, buttons);
}

function choice(each, key, chosen, act) {
  const bar = el("span", { class: "bar", "aria-hidden": "true" });
  bar.style.width = `${100 * each.chance}%`;
  return el("button", { class: "choice", "aria-keyshortcuts": key, "aria-pressed": String(each.label) === chosen ? "true" : "false",
    onclick: () => act.decide("label", each.label) },
  bar, key === null ? null : el("kbd", { "aria-hidden": "true" }, key), el("span", { class: "label" }, each.label),
  el("span", { class: "share" }, percent(each.chance)));
}

function others(card, facts, inside, act) {
  const rest = facts.classes.filter((label) => !inside.has(String(label)));
  if (!rest.length) return null;
  const likely = card.others.map((each) => String(each.label));
  const order = [...card.others.map((each) => each.label), ...rest.filter((label) => !likely.includes(String(label)))];
  const chances = new Map(card.others.map((each) => [String(each.label), each.chance]));
  const select = el("select", { "aria-label": "another class" }, order.map((label, i) => el("option", { value: i },
    chances.has(String(label)) ? `${label} (${percent(chances.get(String(label)))})` : label)));
  return el("div", { class: "others" }, el("span", {}, "not in the set:"), select,
    el("button", { class: "small", onclick: () => act.decide("label", order[Number(select.value)]) }, "choose"));
}

function votes(card) {
  if (!card.votes.length) return null;
  return el("table", { class: "votes" }, el("caption", {}, "Votes"),
    el("tbody", {}, card.votes.map((each) => el("tr", {}, el("th", { scope: "row" }, each.who), el("td", {}, each.label)))));
}

function neighbours(card, source, act) {
  if (!card.neighbours.length) return null;
  const items = card.neighbours.map((each) => el("li", {},
    el("button", { class: "neighbour", onclick: () => act.open(each.row) },
      card.image ? el("img", { src: source.image(each.row), alt: "", loading: "lazy" }) : null,
      el("span", { class: "label" }, each.answer),
      el("span", { class: "note" }, each.candidates.length > 1 ? `of ${each.candidates.join(", ")}` : each.name))));
  return el("section", { class: "around" }, el("h3", {}, "Nearest rows and their answers"), el("ul", {}, items));
}
