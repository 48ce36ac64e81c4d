/** The ask view: a query, its ranked answers, and the reasons for each. */

import { answerList } from "./answers.js";
import * as api from "./api.js";
import { copyLink } from "./copy.js";
import { announce, el } from "./dom.js";
import { questionForm } from "./question.js";
import { knownFacts } from "./known.js";
import { empty, region } from "./region.js";
import { address, amend, go } from "./router.js";
import { whenAnswer, whenWords } from "./when.js";
import { counted, dates } from "./words.js";

const ANSWERS = 10;
const MOST = 100;
const REASONS = 8;

export function askView({ model, relations }) {
  const form = questionForm({ model, relations }, (question) => go("ask", question));
  const results = region();
  // Of the address: the query, k answers, why: candidates with open reasons, against: the candidate
  // to compare with, without: facts to leave out.
  let state = {};
  let answers = null;

  async function update(params) {
    const before = state;
    state = read(params);
    const isSame = JSON.stringify(asked(state)) === JSON.stringify(asked(before));
    if (answers && isSame && state.k === before.k) {
      answers.unfold(chosen(state));
      return;
    }
    const seen = answers && isSame ? howMany(before) : 0;
    answers = null;
    form.write(state);
    const isWhole = state.missing ? state.subject && state.object : state.subject || state.object;
    if (!state.relation || !isWhole) {
      results.show(welcome(model.example));
      return;
    }
    if (state.missing) {
      await results.load((signal) => api.when(asked(state), signal), drawnTime, correct);
      if (!isSame && before.relation) seeTop(results.element);
      return;
    }
    const query = { ...asked(state), k: howMany(state) };
    await results.load((signal) => api.predict(query, signal), drawn, correct);
    if (!isSame && before.relation) seeTop(results.element);
    if (seen) answers?.focus(seen); // the link that had the focus is gone
  }

  /** Repeats the query with a known name instead of the unknown one. */
  function correct(name) {
    const isKnown = relations.some((one) => one.name === state.relation);
    const wrong = !isKnown ? "relation" : state.object ? "object" : "subject";
    go("ask", { ...state, [wrong]: name });
  }

  function drawn({ answers: found, known, known_total: total }) {
    const first = found.length > 0 ? ` The first is ${found[0].candidate}.` : "";
    const facts = total > 0 ? `${counted(total, "known fact")}. ` : "";
    announce(`${facts}${counted(found.length, "answer")}.${first}`);
    answers = answerList(found, model.unit, explain, (changed) =>
      amend("ask", { ...state, ...changed }),
    );
    answers.unfold(chosen(state));
    const k = howMany(state);
    const more = address("ask", { ...state, k: Math.min(MOST, k + ANSWERS) });
    return [
      el("div", { class: "results-head" }, el("h2", {}, inWords(state)), copyLink()),
      el("p", { class: "kind" }, `Evidence: ${model.evidence}.`),
      knownFacts(known, total),
      total > 0 && el("h3", { class: "predictions" }, "Predictions"),
      answers.list,
      found.length >= k &&
        k < MOST &&
        el("a", { class: "button quiet", href: more }, "More answers"),
      ...answers.others,
    ].filter(Boolean);
  }

  function drawnTime(found) {
    announce(whenWords(found));
    return [
      el("div", { class: "results-head" }, el("h2", {}, inWords(state)), copyLink()),
      el("p", { class: "kind" }, `Evidence: ${model.evidence}.`),
      el("div", { class: "card when" }, whenAnswer(found, model.unit)),
    ];
  }

  function explain(candidate, { against, without }, signal) {
    const compared = against && against !== candidate ? { against } : {};
    const query = { ...asked(state), candidate, ...compared, without, reasons: REASONS };
    return api.explain(query, signal);
  }

  return {
    title: "Ask",
    element: el(
      "div",
      {},
      el("h1", { tabindex: "-1" }, "Ask"),
      el(
        "p",
        { class: "lead" },
        "Give one entity of a fact and its time, or both entities to ask when it holds. The answers come with the dated facts behind them.",
      ),
      form.element,
      results.element,
    ),
    update,
  };
}

/** Scrolls to the top of an element that is below the viewport. */
function seeTop(element) {
  if (element.getBoundingClientRect().top > 0.7 * window.innerHeight) {
    element.scrollIntoView({ block: "start" });
  }
}

function read(params) {
  const text = (name) => params.get(name) ?? "";
  return {
    subject: text("subject"),
    object: text("subject") && text("missing") !== "time" ? "" : text("object"),
    missing: text("missing") === "time" ? "time" : "",
    relation: text("relation"),
    start: text("start"),
    end: text("end"),
    k: text("k"),
    why: params.getAll("why"),
    against: text("against"),
    without: params.getAll("without").map(Number).filter(Number.isSafeInteger),
  };
}

/** What people chose about the reasons. */
function chosen({ why, against, without }) {
  return { why, against, without };
}

function howMany({ k }) {
  return Math.min(MOST, Math.max(1, Number.parseInt(k, 10) || ANSWERS));
}

/** The query as the service takes it, without empty fields. */
function asked({ subject, object, relation, start, end }) {
  const parts = Object.entries({ subject, object, relation, start, end });
  return Object.fromEntries(parts.filter(([, value]) => value));
}

function inWords({ subject, object, relation, start, end }) {
  const when = start || end ? `, ${dates(start, end)}` : "";
  return `${subject || "?"} ${relation} ${object || "?"}${when}`;
}

function welcome(example) {
  return empty(
    "Ask something.",
    el(
      "p",
      {},
      el("a", { class: "button quiet", href: address("ask", example) }, `Try: ${inWords(example)}`),
    ),
  );
}
