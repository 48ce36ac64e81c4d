/** The form that filters and sorts rules. */

import { el } from "./dom.js";
import { field, segments, select } from "./form.js";

const ANY = ["", "Any"];
const SORTS = [
  ["", "Gain"],
  ["weight", "Weight"],
  ["confidence", "Confidence"],
  ["support", "Support"],
  ["length", "Length"],
];
const ORDERS = [
  ["", "Highest first"],
  ["asc", "Lowest first"],
];
const DIRECTIONS = [
  ["", "the object"],
  ["true", "the subject"],
];

/** The form; `choose` is called after a change. */
export function ruleFilters({ model, relations }, choose) {
  const names = relations.map(({ name }) => name);
  const lengths = Array.from({ length: model.max_length }, (_, place) => String(place + 1));
  const controls = {
    relation: select([["", "All relations"], ...same(names)]),
    inverse: segments("Predicts", DIRECTIONS),
    sort: select(SORTS),
    order: select(ORDERS),
    min_confidence: number({ max: 1, step: 0.01 }),
    min_support: number({ step: 1 }),
    length: select([ANY, ...same(lengths)]),
    body: select([ANY, ...same(names)]),
    temporal: select([ANY, ...same(model.words)]),
  };
  const element = el(
    "form",
    {
      class: "filters",
      "aria-label": "Filter rules",
      onchange: () => element.reportValidity() && choose(read()),
      onsubmit: (event) => event.preventDefault(),
    },
    el(
      "div",
      { class: "filter-row" },
      field("Relation", controls.relation),
      controls.inverse.element,
      field("Sort by", controls.sort),
      field("Order", controls.order),
    ),
    el(
      "div",
      { class: "filter-row" },
      field("Confidence at least", controls.min_confidence),
      field("Support at least", controls.min_support),
      field("Length", controls.length),
      field("Body has", controls.body),
      field("Time", controls.temporal),
    ),
  );

  /** The filters by the names of the service; '' for none. */
  function read() {
    return Object.fromEntries(Object.entries(controls).map(([name, one]) => [name, one.value]));
  }

  /** Fills in filters; an unknown value becomes the first option. */
  function write(params) {
    for (const [name, control] of Object.entries(controls)) {
      control.value = params.get(name) ?? "";
      if (control.selectedIndex === -1) control.selectedIndex = 0;
    }
  }

  return { element, read, write };
}

function number(attributes) {
  return el("input", { type: "number", min: 0, placeholder: "0", ...attributes });
}

function same(words) {
  return words.map((word) => [word, word]);
}
