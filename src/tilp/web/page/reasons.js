/** Reasons as cards: a sentence, how much it decides, and the dated facts behind it. */

import { bar, roomFor } from "./bars.js";
import { el } from "./dom.js";
import { factWords } from "./known.js";
import { lanes } from "./lanes.js";
import { pictureWhenSeen } from "./picture.js";
import { comparison, count, counted, percent, score, term } from "./words.js";

const SHOWN = 3; // reasons that are open at once

/**
 * The reasons of an explanation, of which there is one at least; those that decide come first.
 *
 * @param explanation as the service gives it.
 * @param draw (facts, candidate) → a promise of their picture.
 * @param unit the unit of time.
 * @param remove called with the id of a fact to leave out of the evidence.
 */
export function reasonList(explanation, draw, unit, remove) {
  const { query, reasons, rest, candidate, rival } = explanation;
  const ground = ({ facts }, owner) =>
    grounding(facts, () => draw(facts, owner), lanes(facts, query, unit), remove);
  const room = roomFor(reasons.flatMap((reason) => [reason.score, reason.rival]));
  const cards = (some) =>
    el(
      "ol",
      { class: "reasons" },
      some.map((reason) => reasonCard(reason, { candidate, rival, room, ground })),
    );
  const [first, ...next] = reasons;
  const deciding = [first, ...next.filter(({ same }) => !same)];
  const others = deciding.slice(SHOWN);
  const same = next.filter((reason) => reason.same);
  return el(
    "section",
    {},
    el("h4", { class: "why", tabindex: "-1" }, heading(explanation)),
    cards(deciding.slice(0, SHOWN)),
    others.length > 0 && folded(counted(others.length, "more reason"), others, cards),
    rest.count > 0 && el("p", { class: "rest" }, restWords(explanation)),
    same.length > 0 &&
      folded(`${counted(same.length, "reason")} worth the same for ${rival}`, same, cards),
  );
}

function heading({ candidate, rank, rival, rival_rank: rivalRank }) {
  if (!rival) return `Why ${candidate}`;
  return rank < rivalRank
    ? `Why ${candidate} comes before ${rival}`
    : `Why ${candidate} comes after ${rival}`;
}

function restWords({ rest, rival }) {
  const other = rival ? `, ${score(rest.rival)} to that of ${rival}` : "";
  const reasons = counted(rest.count, "smaller reason");
  return `and ${reasons}: ${score(rest.score)} to the score together${other}`;
}

function folded(title, reasons, cards) {
  const total = reasons.reduce((sum, reason) => sum + reason.score, 0);
  return el(
    "details",
    { class: "folded" },
    el("summary", {}, `${title}, ${term(total)} together`),
    cards(reasons),
  );
}

function reasonCard(reason, { candidate, rival, room, ground }) {
  const { sentence, groundings, members, of_rival: ofRival } = reason;
  const owner = ofRival ? rival : candidate;
  const [first, ...others] = groundings;
  return el(
    "li",
    { class: "reason" },
    el("p", { class: "sentence" }, sentence),
    amount(reason, candidate, rival, room),
    first && ground(first, owner),
    members[0]?.picture && pictureWhenSeen(async () => members[0].picture),
    others.length > 0 &&
      el(
        "details",
        {},
        el("summary", {}, shownOf(others.length + 1, reason.walks)),
        others.map((each) => ground(each, owner)),
      ),
    members.length > 0 && parts(members),
  );
}

/** 'All 3 groundings', '3 of 12 groundings' */
function shownOf(shown, all) {
  return all > shown
    ? `${count(shown)} of ${counted(all, "grounding")}`
    : `All ${counted(shown, "grounding")}`;
}

/** How much a reason decides: the difference, and both contributions as bars. */
function amount({ score: own, rival: other, margin }, candidate, rival, room) {
  const line = (name, value) =>
    el(
      "div",
      { class: `amount-line ${name === rival ? "other" : ""}` },
      el("dt", {}, name),
      el("dd", {}, bar(value, room), el("span", { class: "number" }, term(value))),
    );
  const text = rival ? comparison(margin, rival) : term(own);
  return el(
    "div",
    { class: "amount" },
    el("p", { class: margin < 0 ? "term less" : "term" }, text),
    rival && el("dl", {}, line(candidate, own), line(rival, other)),
  );
}

/** The facts of one walk: on a timeline, and as a list of which each can be left out. */
function grounding(facts, draw, drawn, remove) {
  const item = (fact) =>
    el("li", {}, factCheck(fact, true, () => remove(fact.id)), drawn?.lane(fact));
  return el(
    "div",
    { class: "grounding" },
    pictureWhenSeen(draw),
    el("div", {}, el("ul", { class: "facts" }, facts.map(item)), drawn?.scale()),
  );
}

/** A fact with a box: ticked, it is part of the evidence. */
export function factCheck(fact, isKnown, toggle) {
  const box = el("input", {
    type: "checkbox",
    checked: isKnown,
    "aria-label": `Known: ${fact.subject} ${fact.relation} ${fact.object}`,
    title: isKnown ? "Untick to leave this fact out" : "Tick to put this fact back",
    onchange: toggle,
  });
  return el("div", { class: "fact-check" }, box, el("span", {}, factWords(fact)));
}

/** The contributions that a reason sums up, each with its formula. */
function parts(members) {
  const room = roomFor(members.map((member) => member.score));
  return el(
    "details",
    {},
    el("summary", {}, `${counted(members.length, "contribution")} in detail`),
    el(
      "ul",
      { class: "members" },
      members.map((member) =>
        el(
          "li",
          {},
          el(
            "div",
            { class: "member-amount" },
            el("span", { class: "term" }, term(member.score)),
            bar(member.score, room),
          ),
          el(
            "div",
            {},
            el("p", {}, member.text),
            el("p", { class: "kind" }, member.kind, member.rule && ruleCounts(member.rule)),
            member.rule && formula(member.rule.text),
          ),
        ),
      ),
    ),
  );
}

function ruleCounts({ support, body_support: bodySupport, confidence }) {
  const cases = `${count(support)} of ${counted(bodySupport, "such case")}`;
  return ` · in ${cases} (confidence ${percent(confidence)})`;
}

/** A rule in formal notation, on demand. */
export function formula(text) {
  return el(
    "details",
    { class: "formula" },
    el("summary", {}, "Formula"),
    el("code", {}, text),
  );
}
