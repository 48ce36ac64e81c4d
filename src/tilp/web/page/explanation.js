/** Why a candidate has its rank: its reasons against a rival, and what if facts were not known. */

import * as api from "./api.js";
import { combobox } from "./combobox.js";
import { findEntities } from "./completion.js";
import { announce, el } from "./dom.js";
import { factCheck, reasonList } from "./reasons.js";
import { count, counted, percent, score } from "./words.js";

/**
 * An explanation as elements.
 *
 * @param explanation as the service gives it.
 * @param candidate the name or id of the candidate.
 * @param unit the unit of time.
 * @param names the answers of the query, which are suggested to compare with.
 * @param change called with what to change: {without: ids of facts}, {against: a name}.
 */
export function explained(explanation, candidate, unit, names, change) {
  const { query, removed, reasons } = explanation;
  const draw = (facts, owner) => {
    const steps = facts.map(({ id, inverse }) => ({ id, inverse }));
    const name = owner === explanation.candidate ? candidate : owner;
    return api.groundingPicture({ ...query, candidate: name, facts: steps });
  };
  const without = removed.map(({ id }) => id);
  const remove = (id) => change({ without: [...new Set([...without, id])] });
  return [
    summary(explanation),
    removed.length > 0 && whatIf(explanation, change),
    reasons.length > 0 && reasonList(explanation, draw, unit, remove),
    explanation.ablation && ablation(explanation),
    explanation.rival && contrast(explanation, names, change),
  ].filter(Boolean);
}

function summary({ candidate, claim, rank, score: total, share, known }) {
  return el(
    "div",
    {},
    el("p", { class: "claim" }, `${claim}?`),
    el(
      "p",
      { class: "standing" },
      el("strong", {}, candidate),
      ` has rank ${count(rank)} with a score of ${score(total)}, `,
      `${percent(share)} of the total over all candidates.`,
      known && " Train already has it as an answer at an overlapping time.",
    ),
  );
}

/** What changes without the facts that were unticked; each can be put back. */
function whatIf({ candidate, removed, before, rank, score: total, winner }, change) {
  const ids = removed.map(({ id }) => id);
  const back = (id) => change({ without: ids.filter((one) => one !== id) });
  const facts = counted(removed.length, "fact");
  const moved =
    rank === before.rank
      ? `${candidate} keeps rank ${count(rank)}`
      : `${candidate} goes from rank ${count(before.rank)} to ${count(rank)}`;
  const first = winner === before.winner ? "" : ` ${winner} comes first then.`;
  const text =
    `If ${removed.length === 1 ? "this fact were" : `these ${facts} were`} not known: ${moved}; ` +
    `its score goes from ${score(before.score)} to ${score(total)}.${first}`;
  announce(text);
  return el(
    "section",
    { class: "notice what-if", tabindex: "-1" },
    el("p", {}, text),
    el(
      "ul",
      { class: "facts" },
      removed.map((fact) => el("li", {}, factCheck(fact, false, () => back(fact.id)))),
    ),
    removed.length > 1 &&
      el(
        "button",
        { type: "button", class: "quiet", onclick: () => change({ without: [] }) },
        "Put all back",
      ),
  );
}

/** The score without the facts of the first reason. */
function ablation({ candidate, ablation: { facts, drop, score: left } }) {
  const these = facts.length === 1 ? "the fact" : `the ${count(facts.length)} facts`;
  const change = drop >= 0 ? `fall by ${score(drop)}` : `rise by ${score(-drop)}`;
  return el(
    "p",
    { class: "ablation" },
    `Without ${these} of its first reason in favour, the score of ${candidate} would ${change} `,
    `to ${score(left)}.`,
  );
}

/** A field for the candidate to compare with; it suggests the other answers first. */
function contrast({ candidate, rival }, names, change) {
  const others = names.filter(({ name }) => name !== candidate && name !== rival);
  const find = async (text, signal) =>
    text && text !== rival ? findEntities(text, signal) : others;
  const choose = (name) => change({ against: name });
  const field = combobox({ label: `Compare ${candidate} with`, find, choose });
  field.value = rival;
  const submit = (event) => {
    event.preventDefault();
    if (field.value !== rival) choose(field.value);
  };
  return el(
    "form",
    { class: "one-line contrast", "aria-label": "Compare", onsubmit: submit },
    field.element,
    el("button", { type: "submit", class: "quiet" }, "Compare"),
  );
}
