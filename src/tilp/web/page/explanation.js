/** Why a candidate is where it is: its reasons, their facts, and what it lacks. */

import { bar, roomFor } from "./bars.js";
import { el } from "./dom.js";
import { picture } from "./picture.js";
import { address } from "./router.js";
import { count, counted, dates, percent, score, spoken, term } from "./words.js";

/** An explanation, as the service gives it, as elements. */
export function explained(explanation) {
  return [
    summary(explanation),
    explanation.reasons.length > 0 && reasons(explanation),
    explanation.fall && fall(explanation),
    explanation.lacks.length > 0 && lacks(explanation),
  ].filter(Boolean);
}

function summary({ candidate, rank, score: total, share, known }) {
  return el(
    "p",
    { class: "summary" },
    el("strong", {}, candidate),
    ` is number ${count(rank)} with a score of ${score(total)}, `,
    `${percent(share)} of all candidates together.`,
    known && " The facts already have it as an answer at a touching time.",
  );
}

function reasons({ reasons: listed, rest, score: total }) {
  const room = roomFor(listed.map((reason) => reason.score));
  return el(
    "section",
    { class: "reasons" },
    el("h4", {}, "What speaks for and against it"),
    el(
      "ol",
      {},
      listed.map((reason, place) =>
        el("li", { class: "reason" }, described(reason, room, total, place === 0)),
      ),
    ),
    rest?.count > 0 &&
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
      { class: "measure" },
      el("span", { class: "term" }, term(reason.score)),
      bar(reason.score, room),
      total > 0 &&
        el("span", { class: "of-score" }, `${percent(reason.score / total)} of the score`),
    ),
    el(
      "div",
      { class: "because" },
      el("p", { class: "words" }, reason.words, " ", el("span", { class: "badge" }, reason.kind)),
      reason.rule && ruleNumbers(reason.rule),
      reason.groundings.length > 0 && groundings(reason, first),
    ),
  ];
}

function ruleNumbers({ text, confidence, support, fired }) {
  return [
    el("p", { class: "formula" }, el("code", {}, text)),
    el(
      "p",
      { class: "numbers" },
      `Confidence ${percent(confidence)}; `,
      `right for ${count(support)} of ${counted(fired, "fact")} where it fired.`,
    ),
  ];
}

function groundings({ groundings: shown, walks }, first) {
  const all = Math.max(walks, shown.length);
  const title =
    all > shown.length
      ? `${count(shown.length)} of ${count(all)} groundings`
      : counted(all, "grounding");
  return el(
    "details",
    { class: "groundings", open: first },
    el("summary", {}, title),
    shown.map(grounded),
  );
}

/** The facts of one walk: as a picture, and as a list. */
export function grounded({ facts, svg }) {
  return el(
    "div",
    { class: "grounding" },
    svg && picture(svg),
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

function fall({ fall: { grounding, score: left, fall: lost }, score: total }) {
  const room = roomFor([total, left]);
  const line = (name, value) =>
    el(
      "tr",
      {},
      el("th", { scope: "row" }, name),
      el("td", {}, bar(value, room)),
      el("td", { class: "number" }, score(value)),
    );
  return el(
    "section",
    { class: "fall" },
    el("h4", {}, "If the strongest grounding were not there"),
    el(
      "p",
      {},
      lost >= 0
        ? `The score would fall by ${score(lost)}`
        : `The score would rise by ${score(-lost)}`,
      total > 0 && `, ${percent(Math.abs(lost) / total)} of it`,
      `, without ${counted(grounding.facts.length, "fact")}.`,
    ),
    el(
      "table",
      { class: "pair" },
      el("caption", { class: "unseen" }, "Score with and without"),
      el("tbody", {}, line("with", total), line("without", left)),
    ),
    el("details", {}, el("summary", {}, "Which facts"), grounded({ facts: grounding.facts })),
  );
}

function lacks({ lacks: listed, winner, candidate }) {
  const room = roomFor(listed.flatMap((lack) => [lack.winner, lack.candidate]));
  const cell = (value) =>
    el("td", { class: "measured" }, el("span", { class: "term" }, term(value)), bar(value, room));
  return el(
    "section",
    { class: "lacks" },
    el("h4", {}, `Why not before ${winner}?`),
    el(
      "div",
      {
        class: "scroll",
        tabindex: "0",
        role: "group",
        "aria-label": `What ${winner} has that ${candidate} lacks`,
      },
      el(
        "table",
        {},
        el(
          "thead",
          {},
          el(
            "tr",
            {},
            [winner, candidate].map((name) => el("th", { scope: "col" }, name)),
            el("th", { scope: "col" }, "Reason"),
          ),
        ),
        el(
          "tbody",
          {},
          listed.map((lack) =>
            el("tr", {}, cell(lack.winner), cell(lack.candidate), el("td", {}, lack.reason.words)),
          ),
        ),
      ),
    ),
  );
}
