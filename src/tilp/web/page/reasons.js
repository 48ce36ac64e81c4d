/** The reasons of an explanation, each with its contribution to the score and its facts. */

import { bar, roomFor } from "./bars.js";
import { el } from "./dom.js";
import { pictureWhenSeen } from "./picture.js";
import { address } from "./router.js";
import { count, counted, dates, percent, spoken, term } from "./words.js";

/** Kinds of reasons of the service by the names that people read. */
const KINDS = {
  prior: "popularity",
  "other facts": "candidate history",
  "facts with the subject": "candidate history with the subject",
  "soft walks": "random walks",
};
const kindOf = ({ kind }) => KINDS[kind] ?? kind;

/**
 * The contributions to a candidate's score, the largest first.
 *
 * @param draw the facts of a grounding → a promise of their picture.
 */
export function reasonList({ reasons, rest, score: total }, draw) {
  const room = roomFor(reasons.map((reason) => reason.score));
  const item = (reason, place) =>
    el(
      "li",
      { class: "reason" },
      measured(reason.score, room, total),
      el(
        "div",
        { class: "because" },
        el("p", { class: "words" }, reason.words),
        el("p", { class: "source" }, kindOf(reason), reason.rule && ruleNumbers(reason.rule)),
        reason.groundings.length > 0 && groundings(reason, draw, place === 0),
      ),
    );
  return el(
    "section",
    { class: "reasons" },
    el("h4", {}, "Contributions to the score"),
    el("ol", {}, reasons.map(item)),
    rest.count > 0 &&
      el(
        "p",
        { class: "rest" },
        `and ${counted(rest.count, "smaller reason")}: ${term(rest.score)} together`,
      ),
  );
}

function measured(score, room, total) {
  return el(
    "div",
    {},
    el("span", { class: "term" }, term(score)),
    bar(score, room),
    total > 0 && el("span", { class: "of-score" }, `${percent(score / total)} of the score`),
  );
}

function ruleNumbers({ confidence, support, fired }) {
  return (
    ` · confidence ${percent(confidence)} · ` +
    `support ${count(support)} of ${counted(fired, "fact")} where its body holds`
  );
}

function groundings({ groundings: shown, walks, rule }, draw, isOpen) {
  const all = Math.max(walks, shown.length);
  const cut = all > shown.length ? `${count(shown.length)} of ` : "";
  return el(
    "details",
    { open: isOpen },
    el("summary", {}, cut + counted(all, "grounding")),
    rule && el("p", { class: "formula" }, el("code", {}, rule.text)),
    shown.map((grounding) => groundingCard(grounding, draw)),
  );
}

/** The facts of one walk: as a picture and as a list. */
export function groundingCard({ facts }, draw) {
  return el(
    "div",
    { class: "grounding" },
    pictureWhenSeen(() => draw(facts)),
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
