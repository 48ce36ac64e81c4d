/** The rules view: what was learned, by relation, sorted and filtered. */

import * as api from "./api.js";
import { copyLink } from "./copy.js";
import { announce, el } from "./dom.js";
import { pageNumber, pager } from "./pager.js";
import { empty, region } from "./region.js";
import { address, go } from "./router.js";
import { ruleCard } from "./rule-card.js";
import { ruleFilters } from "./rule-filters.js";
import { counted } from "./words.js";

const PAGE = 20;

export function rulesView(served) {
  const filters = ruleFilters(served, (choice) => go("rules", choice));
  const results = region();
  let shown = 1; // the page

  function update(params) {
    filters.write(params);
    const { page: _, ...choice } = Object.fromEntries(params);
    const page = pageNumber(params);
    if (page !== shown) results.reveal();
    shown = page;
    results.load(
      (signal) => api.rules({ ...choice, offset: (page - 1) * PAGE, limit: PAGE }, signal),
      (found) => drawn(found, choice, page),
      (name) => go("rules", { ...choice, relation: name }),
    );
  }

  function drawn({ total, rules }, choice, page) {
    announce(counted(total, "rule"));
    if (rules.length === 0) return nothing();
    const pages = Math.ceil(total / PAGE);
    return [
      el("p", { class: "count" }, counted(total, "rule")),
      el("ol", { class: "rules" }, rules.map(ruleCard)),
      pager(page, pages, (number) => address("rules", { ...choice, page: number })),
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
        "What was learned: facts in this order in time make another fact likely.",
      ),
      filters.element,
      results.element,
    ),
    update,
  };
}

function nothing() {
  const all = el("a", { href: address("rules") }, "see all rules");
  return empty("No rule matches.", el("p", {}, "Remove a filter, or ", all, "."));
}
