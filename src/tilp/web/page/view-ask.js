/** The ask view: a question, its ranked answers, and the reasons for each. */

import * as api from "./api.js";
import { bar, roomFor } from "./bars.js";
import { combobox } from "./combobox.js";
import { findEntities, findRelations } from "./completion.js";
import { copyLink } from "./copy.js";
import { announce, el, freshId } from "./dom.js";
import { explained } from "./explanation.js";
import { field, segments } from "./form.js";
import { empty, region } from "./region.js";
import { address, amend, go } from "./router.js";
import { counted, dates, percent, spoken } from "./words.js";

const ANSWERS = 10;
const MOST = 100;

export function askView({ model, relations }) {
  const results = region();
  const asked = segments(
    "What is missing?",
    [
      ["object", "the object"],
      ["subject", "the subject"],
    ],
    arrange,
  );
  const given = combobox({ label: "Subject", find: findEntities });
  const relation = combobox({ label: "Relation", find: findRelations(relations) });
  const missing = el(
    "div",
    { class: "field missing" },
    el("span", { class: "label" }),
    el("div", { class: "question-mark" }, "?"),
  );
  const start = el("input", { type: "text", autocomplete: "off", placeholder: "not known" });
  const end = el("input", { type: "text", autocomplete: "off", placeholder: "not known" });
  const triple = el("div", { class: "triple" });
  const form = el(
    "form",
    { class: "card question", role: "search", "aria-label": "Ask", onsubmit: send },
    asked.element,
    triple,
    el(
      "div",
      { class: "times" },
      field(`From (${model.unit})`, start),
      field(`To (${model.unit})`, end),
      el("button", { type: "submit", class: "primary" }, "Ask"),
    ),
  );
  let state = {}; // of the address: the query, how many answers, and whose reasons are open
  let panels = new Map(); // candidate → what shows whether its reasons are open

  /** Puts the field that is given and the question mark where they stand in a fact. */
  function arrange(missingEnd) {
    const [own, other] = missingEnd === "object" ? ["Subject", "Object"] : ["Object", "Subject"];
    given.label = own;
    missing.firstChild.textContent = other;
    const parts = [given.element, relation.element, missing];
    triple.replaceChildren(...(missingEnd === "object" ? parts : parts.reverse()));
  }

  function send(event) {
    event.preventDefault();
    const empty_ = [given, relation].find((one) => !one.value);
    if (empty_) {
      empty_.input.focus();
      results.show(empty("A question needs a relation, and a subject or an object."));
      announce("A question needs a relation, and a subject or an object.");
    } else go("ask", written());
  }

  /** The question as the form has it. */
  function written() {
    const end_ = asked.value === "object" ? "subject" : "object";
    return {
      [end_]: given.value,
      relation: relation.value,
      start: start.value.trim(),
      end: end.value.trim(),
    };
  }

  function update(params) {
    const before = JSON.stringify({ ...state, why: [] });
    state = read(params);
    if (JSON.stringify({ ...state, why: [] }) === before && panels.size) return unfold();
    asked.value = state.object ? "subject" : "object";
    arrange(asked.value);
    given.value = state.subject || state.object;
    relation.value = state.relation;
    start.value = state.start;
    end.value = state.end;
    panels = new Map();
    if (!state.relation || !given.value) results.show(welcome(model));
    else results.load((signal) => api.predict(question(state), signal), answered, correct);
  }

  /** Asks anew with a known name in place of the unknown one. */
  function correct(name) {
    const known = relations.some((one) => one.name === state.relation);
    const wrong = known ? (state.object ? "object" : "subject") : "relation";
    go("ask", { ...state, [wrong]: name });
  }

  function answered({ answers }) {
    announce(
      `${counted(answers.length, "answer")}. The first is ${answers[0]?.candidate ?? "missing"}.`,
    );
    const room = roomFor(answers.map(({ share }) => share));
    const list = el(
      "ol",
      { class: "answers" },
      answers.map((answer) => item(answer, room)),
    );
    const listed = new Set(answers.map(({ candidate }) => candidate));
    const others = el("ol", { class: "answers others" });
    for (const name of state.why.filter((one) => !listed.has(one)))
      others.append(item({ candidate: name }, room));
    unfold();
    return [
      el("div", { class: "results-head" }, el("h2", {}, inWords(state)), copyLink()),
      list,
      answers.length >= state.k &&
        state.k < MOST &&
        el(
          "a",
          { class: "button quiet", href: address("ask", { ...state, k: state.k + ANSWERS }) },
          "More answers",
        ),
      others,
      whyNot(others, room),
    ].filter(Boolean);
  }

  /** An answer, which opens its reasons. */
  function item({ rank, candidate, share, known }, room) {
    const panel = region({ class: "region panel", id: freshId("why"), hidden: true });
    const button = el(
      "button",
      {
        type: "button",
        class: "answer",
        "aria-expanded": "false",
        "aria-controls": panel.element.id,
        onclick: () => toggle(candidate),
      },
      el("span", { class: "rank" }, rank ?? "?"),
      el(
        "span",
        { class: "candidate" },
        candidate,
        known && el("span", { class: "badge" }, "known"),
      ),
      share !== undefined &&
        el(
          "span",
          { class: "share" },
          bar(share, room),
          el("span", { class: "number" }, percent(share)),
        ),
    );
    panels.set(candidate, { button, panel, loaded: false });
    return el("li", { class: "card" }, el("h3", {}, button), panel.element);
  }

  function toggle(candidate) {
    const open = state.why.includes(candidate);
    const why = open ? state.why.filter((one) => one !== candidate) : [...state.why, candidate];
    amend("ask", { ...state, k: state.k === ANSWERS ? "" : state.k, why });
  }

  /** Opens the reasons that the address names, and closes all others. */
  function unfold() {
    for (const [candidate, one] of panels) {
      const open = state.why.includes(candidate);
      one.button.setAttribute("aria-expanded", String(open));
      one.panel.element.hidden = !open;
      if (open && !one.loaded) {
        one.loaded = true;
        const query = { ...question(state), candidate };
        delete query.k;
        one.panel.load(
          (signal) => api.explain(query, signal),
          explained,
          (name) => toggle(name),
        );
      }
    }
  }

  /** A field for a candidate that is not among the answers. */
  function whyNot(others, room) {
    const look = (name) => {
      if (!name) return;
      if (!panels.has(name)) others.append(item({ candidate: name }, room));
      if (!state.why.includes(name)) toggle(name);
      panels.get(name).button.focus();
    };
    const other = combobox({ label: "Why not another one?", find: findEntities, choose: look });
    const submit = (event) => {
      event.preventDefault();
      look(other.value);
    };
    return el(
      "form",
      { class: "why-not", onsubmit: submit },
      other.element,
      el("button", { type: "submit", class: "quiet" }, "Explain"),
    );
  }

  return {
    title: "Ask",
    element: el(
      "div",
      { class: "view" },
      el("div", { class: "view-head" }, el("h1", { tabindex: "-1" }, "Ask")),
      el(
        "p",
        { class: "lead" },
        "Give one end of a fact and its time. The answers come with the dated facts behind them.",
      ),
      form,
      results.element,
    ),
    update,
  };
}

function read(params) {
  const text = (name) => params.get(name) ?? "";
  const k = Math.min(MOST, Math.max(1, Number.parseInt(text("k"), 10) || ANSWERS));
  const [subject, object] = [text("subject"), text("object")];
  return {
    subject,
    object: subject ? "" : object,
    relation: text("relation"),
    start: text("start"),
    end: text("end"),
    k,
    why: params.getAll("why"),
  };
}

/** The question as the service takes it. */
function question({ subject, object, relation, start, end, k }) {
  const given = Object.entries({ subject, object, relation, start, end }).filter(
    ([, value]) => value,
  );
  return { ...Object.fromEntries(given), k };
}

function inWords({ subject, object, relation, start, end }) {
  const when = start || end ? `, ${dates(start, end)}` : "";
  return [subject || "?", ` ${spoken(relation)} `, object || "?", when];
}

function welcome({ example }) {
  return empty(
    "Ask something.",
    example &&
      el(
        "p",
        {},
        el("a", { class: "button quiet", href: address("ask", example) }, [
          "Try: ",
          inWords(example),
        ]),
      ),
  );
}
