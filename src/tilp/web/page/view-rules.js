/** The rules view: what was learned, by relation, sorted and filtered. */

import * as api from "./api.js";
import { copyLink } from "./copy.js";
import { announce, el } from "./dom.js";
import { field, segments, select } from "./form.js";
import { pager } from "./pager.js";
import { empty, region } from "./region.js";
import { address, go } from "./router.js";
import { ruleCard } from "./rule-card.js";
import { count, counted } from "./words.js";

const PAGE = 20;
const SORTS = [
  ["weight", "Weight"],
  ["confidence", "Confidence"],
  ["support", "Support"],
  ["length", "Length"],
];

export function rulesView({ model, relations }) {
  const results = region();
  const controls = {
    relation: select([
      ["", "All relations"],
      ...relations.map((one) => [
        one.name,
        `${one.name} (${count(one.rules + one.inverse_rules)})`,
      ]),
    ]),
    sort: select(SORTS),
    order: select([
      ["desc", "Highest first"],
      ["asc", "Lowest first"],
    ]),
    min_confidence: el("input", {
      type: "number",
      min: 0,
      max: 1,
      step: 0.05,
      placeholder: "0",
      inputmode: "decimal",
    }),
    min_support: el("input", {
      type: "number",
      min: 0,
      step: 1,
      placeholder: "0",
      inputmode: "numeric",
    }),
    length: select([
      ["", "Any"],
      ...Array.from({ length: model.max_length }, (_, place) => [
        String(place + 1),
        String(place + 1),
      ]),
    ]),
    body: select([["", "Any"], ...named(relations.map(({ name }) => name))]),
    temporal: select([["", "Any"], ...named(sorted(model.words))]),
  };
  const direction = segments(
    "Predicts",
    [
      ["false", "its object"],
      ["true", "its subject"],
    ],
    send,
  );
  const form = el(
    "form",
    {
      class: "filters",
      "aria-label": "Choose rules",
      onchange: send,
      onsubmit: (event) => event.preventDefault(),
    },
    el(
      "div",
      { class: "filter-row" },
      field("Relation", controls.relation),
      direction.element,
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

  function send() {
    if (form.reportValidity()) go("rules", chosen());
  }

  function chosen() {
    const state = Object.fromEntries(
      Object.entries(controls).map(([name, control]) => [name, control.value]),
    );
    if (state.sort === "weight") state.sort = "";
    if (state.order === "desc") state.order = "";
    if (state.relation && direction.value === "true") state.inverse = "true";
    return state;
  }

  function update(params) {
    for (const [name, control] of Object.entries(controls)) {
      control.value = params.get(name) ?? "";
      if (control.selectedIndex === -1) control.selectedIndex = 0;
    }
    direction.value = params.get("inverse") ?? "false";
    direction.element.disabled = !params.get("relation");
    const page = Math.max(1, Number.parseInt(params.get("page") ?? "1", 10) || 1);
    const choice = { ...Object.fromEntries(params), offset: (page - 1) * PAGE, limit: PAGE };
    delete choice.page;
    results.load(
      (signal) => api.rules(choice, signal),
      (found) => drawn(found, page),
      (name) => go("rules", { ...chosen(), relation: name }),
    );
  }

  function drawn({ total, rules }, page) {
    announce(counted(total, "rule"));
    if (rules.length === 0) {
      return empty(
        "No rule is like that.",
        el(
          "p",
          {},
          "Ask for less confidence or support, or ",
          el("a", { href: "#/rules" }, "see all rules"),
          ".",
        ),
      );
    }
    const state = chosen();
    return [
      el("p", { class: "count" }, counted(total, "rule")),
      el("ol", { class: "rules", start: (page - 1) * PAGE + 1 }, rules.map(ruleCard)),
      pager(page, Math.ceil(total / PAGE), (number) =>
        address("rules", { ...state, page: number === 1 ? "" : number }),
      ),
    ].filter(Boolean);
  }

  return {
    title: "Rules",
    element: el(
      "div",
      {},
      el("div", { class: "view-head" }, el("h1", { tabindex: "-1" }, "Rules"), copyLink()),
      el(
        "p",
        { class: "lead" },
        "What was learned: where facts stand like this in time, another one is likely.",
      ),
      form,
      results.element,
    ),
    update,
  };
}

/** Words for two intervals: those without a number as they come, then gaps by their length. */
function sorted(words) {
  const length = (word) => Number.parseInt(word, 10) || 0;
  return words.toSorted((one, other) => length(one) - length(other));
}

function named(words) {
  return words.map((word) => [word, word]);
}
