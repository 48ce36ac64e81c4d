/** The data view: what is in the facts, what is wrong with them, and one entity's timeline. */

import * as api from "./api.js";
import { factsOverTime } from "./chart.js";
import { combobox } from "./combobox.js";
import { findEntities } from "./completion.js";
import { copyLink } from "./copy.js";
import { defects, overview, relationsTable, splitsTable } from "./inspection.js";
import { announce, el } from "./dom.js";
import { pageNumber, pager } from "./pager.js";
import { empty, region } from "./region.js";
import { address, go } from "./router.js";
import { timeline } from "./timeline.js";
import { counted } from "./words.js";

const PAGE = 100;

export function dataView({ model }) {
  const figures = el("div");
  const all = region({ class: "region sections" });
  const one = region();
  const entity = combobox({ label: "Entity", find: findEntities, choose: look });
  const form = el(
    "form",
    { class: "one-line", "aria-label": "Choose an entity", onsubmit: submit },
    entity.element,
    el("button", { type: "submit", class: "primary" }, "Show"),
  );
  let asked = false;
  let shown = 1; // the page of facts

  function submit(event) {
    event.preventDefault();
    look(entity.value);
  }

  function look(name) {
    go("data", { entity: name });
  }

  function update(params) {
    if (!asked) {
      asked = true;
      all.load(api.data, (found) => {
        figures.replaceChildren(overview(found.inspection));
        return sections(found, model.unit);
      });
    }
    const name = params.get("entity") ?? "";
    const page = pageNumber(params);
    if (page !== shown) one.reveal();
    shown = page;
    entity.value = name;
    if (!name)
      one.show(
        empty("Whose facts?", el("p", {}, "Type a part of a name to see its facts over time.")),
      );
    else {
      one.load(
        (signal) => api.facts({ entity: name, offset: (page - 1) * PAGE, limit: PAGE }, signal),
        (found) => factsOf(found, page),
        look,
      );
    }
  }

  function factsOf({ entity: name, total, facts }, page) {
    announce(`${counted(total, "fact")} of ${name}`);
    if (facts.length === 0) return empty(`${name} has no facts.`);
    return [
      el("p", { class: "count" }, counted(total, "fact")),
      timeline(name, facts, model.unit),
      pager(page, Math.ceil(total / PAGE), (number) =>
        address("data", { entity: name, page: number }),
      ),
    ].filter(Boolean);
  }

  return {
    title: "Data",
    element: el(
      "div",
      {},
      el("div", { class: "view-head" }, el("h1", { tabindex: "-1" }, "Data"), copyLink()),
      el(
        "p",
        { class: "lead" },
        "The facts that the model was learned from, and their defects.",
      ),
      figures,
      el("section", { class: "entity" }, el("h2", {}, "One entity over time"), form, one.element),
      all.element,
    ),
    update,
  };
}

function sections({ inspection, over_time: overTime }, unit) {
  return [
    el(
      "section",
      {},
      el("h2", {}, "Facts over time"),
      overTime ? factsOverTime(overTime, unit) : el("p", {}, "No fact has a known start."),
    ),
    el("section", {}, el("h2", {}, "Defects"), defects(inspection.defects)),
    el("section", {}, el("h2", {}, "Splits"), splitsTable(inspection.splits)),
    el("section", {}, el("h2", {}, "Relations"), relationsTable(inspection.relations)),
  ];
}
