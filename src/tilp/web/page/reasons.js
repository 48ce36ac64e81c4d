/** The reasons of an explanation, each with its share of the score and the facts behind it. */

import { bar, roomFor } from "./bars.js";
import { el } from "./dom.js";
import { picture } from "./picture.js";
import { address } from "./router.js";
import { count, counted, dates, percent, spoken, term } from "./words.js";

/** What speaks for and against a candidate, the largest first. */
export function reasonList({ reasons, rest, score: total }) {
  const room = roomFor(reasons.map((reason) => reason.score));
  return el(
    "section",
    { class: "reasons" },
    el("h4", {}, "What speaks for and against it"),
    el(
      "ol",
      {},
      reasons.map((reason, place) =>
        el("li", { class: "reason" }, described(reason, room, total, place === 0)),
      ),
    ),
    rest.count > 0 &&
      el(
        "p",
        { class: "rest" },
        `and ${counted(rest.count, "smaller reason")}: ${term(rest.score)} together`,
      ),
  );
}

function described(reason, room, total, first) {
  return [
    el(
      "div",
      {},
      el("span", { class: "term" }, term(reason.score)),
      bar(reason.score, room),
      total > 0 &&
        el("span", { class: "of-score" }, `${percent(reason.score / total)} of the score`),
    ),
    el(
      "div",
      { class: "because" },
      el("p", { class: "words" }, reason.words),
      el("p", { class: "source" }, reason.kind, reason.rule && ruleNumbers(reason.rule)),
      reason.groundings.length > 0 && groundings(reason, first),
    ),
  ];
}

function ruleNumbers({ confidence, support, fired }) {
  return (
    ` · confidence ${percent(confidence)} · ` +
    `reaches the answer of ${count(support)} of the ${counted(fired, "fact")} where it fires`
  );
}

function groundings({ groundings: shown, walks, rule }, first) {
  const all = Math.max(walks, shown.length);
  const cut = all > shown.length ? `${count(shown.length)} of ` : "";
  return el(
    "details",
    { open: first },
    el("summary", {}, cut + counted(all, "grounding")),
    rule && el("p", { class: "formula" }, el("code", {}, rule.text)),
    shown.map(groundingCard),
  );
}

/** The facts of one walk: as a picture, where there is one, and as a list. */
export function groundingCard({ facts, svg }) {
  return el(
    "div",
    { class: "grounding" },
    svg && el("div", { class: "scroll" }, picture(svg)),
    el(
      "ol",
      { class: "facts" },
      facts.map((fact) => el("li", {}, sentence(fact))),
    ),
  );
}

function sentence({ subject, relation, object, start, end }) {
  const linked = (name) => el("a", { href: address("data", { entity: name }) }, name);
  return [
    linked(subject),
    ` ${spoken(relation)} `,
    linked(object),
    ", ",
    el("span", { class: "when" }, dates(start, end)),
  ];
}
