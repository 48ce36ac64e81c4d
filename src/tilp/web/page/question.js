/** The form of a query: the subject or object of a fact, its relation and its dates. */

import { combobox } from "./combobox.js";
import { findEntities, findRelations } from "./completion.js";
import { el } from "./dom.js";
import { field, segments } from "./form.js";

/**
 * The form; `ask` is called with the query.
 *
 * A query is {subject, object, relation, start, end}, all texts; the one of subject and object that
 * is empty is predicted. With `missing: "time"` both are given, and the dates are predicted.
 */
export function questionForm({ model, relations }, ask) {
  const missing = segments(
    "What is missing?",
    [
      ["object", "the object"],
      ["subject", "the subject"],
      ["time", "the time"],
    ],
    arrange,
  );
  const given = combobox({ label: "Subject", find: findEntities });
  const other = combobox({ label: "Object", find: findEntities });
  const relation = combobox({ label: "Relation", find: findRelations(relations) });
  const sought = el("span", { class: "label" });
  const mark = el("div", { class: "field" }, sought, el("div", { class: "question-mark" }, "?"));
  const [start, end] = [dateInput(), dateInput()];
  const triple = el("div", { class: "triple" });
  const element = el(
    "form",
    { class: "card question", role: "search", "aria-label": "Query", onsubmit: send },
    missing.element,
    triple,
    el(
      "div",
      { class: "times" },
      field(`From (${model.unit})`, start),
      field(`To (${model.unit})`, end),
      el("button", { type: "submit", class: "primary" }, "Ask"),
    ),
  );

  /** Puts the given entity and the question mark in the order of a fact. */
  function arrange(asked) {
    const parts = [given.element, relation.element, asked === "time" ? other.element : mark];
    triple.replaceChildren(...(asked === "subject" ? parts.reverse() : parts));
    given.label = asked === "subject" ? "Object" : "Subject";
    sought.textContent = asked === "object" ? "Object" : "Subject";
  }

  function send(event) {
    event.preventDefault();
    const dates = { start: start.value.trim(), end: end.value.trim() };
    if (missing.value === "time") {
      const fact = { subject: given.value, relation: relation.value, object: other.value };
      ask({ ...fact, ...dates, missing: "time" });
      return;
    }
    const known = missing.value === "object" ? "subject" : "object";
    ask({ [known]: given.value, relation: relation.value, ...dates });
  }

  /** Fills in a query. */
  function write(question) {
    missing.value = question.missing || (question.object ? "subject" : "object");
    arrange(missing.value);
    given.value = question.subject || question.object;
    other.value = question.missing ? question.object : "";
    relation.value = question.relation;
    start.value = question.start;
    end.value = question.end;
  }

  return { element, write };
}

function dateInput() {
  return el("input", { type: "text", autocomplete: "off", placeholder: "unknown" });
}
