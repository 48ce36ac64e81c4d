/** Why a candidate has its rank: its reasons, their facts, and what it lacks. */

import * as api from "./api.js";
import { bar, roomFor } from "./bars.js";
import { el } from "./dom.js";
import { groundingCard, reasonList } from "./reasons.js";
import { count, counted, percent, score, term } from "./words.js";

const FAR = 0.1; // share of the score, between what is lost and what is attributed to the grounding

/**
 * An explanation as elements.
 *
 * @param explanation as the service gives it.
 * @param candidate the name or id of the candidate.
 */
export function explained(explanation, candidate) {
  const draw = (facts) => {
    const steps = facts.map(({ number, inverse }) => ({ number, inverse }));
    return api.groundingPicture({ ...explanation.query, candidate, facts: steps });
  };
  return [
    summary(explanation),
    explanation.reasons.length > 0 && reasonList(explanation, draw),
    explanation.fall && fall(explanation, draw),
    explanation.lacks.length > 0 && lacks(explanation),
  ].filter(Boolean);
}

function summary({ candidate, rank, score: total, share, known }) {
  return el(
    "p",
    {},
    el("strong", {}, candidate),
    ` has rank ${count(rank)} with a score of ${score(total)}, `,
    `${percent(share)} of the total over all candidates.`,
    known && " Train already has it as an answer at an overlapping time.",
  );
}

function fall({ fall: { grounding, share, score: left, fall: lost }, score: total }, draw) {
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
    el("h4", {}, "Without the strongest grounding"),
    el(
      "p",
      {},
      lost >= 0
        ? `The score would fall by ${score(lost)}`
        : `The score would rise by ${score(-lost)}`,
      total > 0 && `, ${percent(Math.abs(lost) / total)} of it`,
      `, without ${counted(grounding.facts.length, "fact")}.`,
      lost < (share - FAR) * total && " Other walks and facts then contribute more.",
    ),
    el(
      "table",
      { class: "pair" },
      el("caption", { class: "unseen" }, "Score with and without"),
      el("tbody", {}, line("with", total), line("without", left)),
    ),
    el("details", {}, el("summary", {}, "Which facts"), groundingCard(grounding, draw)),
  );
}

function lacks({ lacks: listed, lacks_rest: rest, winner, candidate }) {
  const room = roomFor(listed.flatMap((lack) => [lack.winner, lack.candidate]));
  const cell = (value) =>
    el("td", { class: "measured" }, value === 0 ? "nothing" : [measure(value), bar(value, room)]);
  const measure = (value) => el("span", { class: "term" }, term(value));
  const row = (lack) =>
    el(
      "tr",
      {},
      cell(lack.winner),
      cell(lack.candidate),
      el("td", { class: "words" }, lack.reason.words),
    );
  const columns = [winner, candidate, "Reason"].map((name) => el("th", { scope: "col" }, name));
  return el(
    "section",
    {},
    el("h4", {}, `Why ${winner} comes first`),
    el(
      "table",
      { class: "lacks" },
      el("thead", {}, el("tr", {}, columns)),
      el("tbody", {}, listed.map(row)),
    ),
    rest.count > 0 &&
      el(
        "p",
        { class: "rest" },
        `and ${counted(rest.count, "smaller difference")}: `,
        `${term(rest.winner)} and ${term(rest.candidate)} together`,
      ),
  );
}
