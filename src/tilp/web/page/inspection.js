/** The output of `tilp inspect`, as tables. */

import { el } from "./dom.js";
import { bar } from "./bars.js";
import { count, counted, percent } from "./words.js";

const SHARE = { low: 0, span: 1 };

/** Each kind of defect: its key in the inspection, its name, and its meaning. */
const DEFECTS = [
  ["start_after_end", "Start after end", "The end is set to the start."],
  ["malformed_dates", "Dates that could not be read", "They count as unknown."],
  ["estimated", "Estimated dates", "They are imputed, not observed."],
  ["duplicates", "Repeated rows", "The same fact with the same dates, in the same split."],
  [
    "same_fact",
    "Same fact in another split",
    "Answers that can be looked up: results look better than they are.",
  ],
  [
    "same_triple",
    "Same triple in another split",
    "At another time; what recurs is easy to predict.",
  ],
  [
    "reversed",
    "Reversed triple in another split",
    "Subject and object swapped; an easy answer for symmetric relations.",
  ],
  ["unseen", "Entities or relations missing from train", "No rule can reach them."],
];

/** The main figures. */
export function overview({ splits, unit, relations }) {
  const { facts, entities, dates } = splits.all;
  return el(
    "dl",
    { class: "tiles" },
    tile(count(facts), "facts"),
    tile(count(entities), "entities"),
    tile(count(relations.length), "relations"),
    tile(dates.first ? `${dates.first} – ${dates.last}` : "none", `dates, by ${unit}`),
    tile(percent(dates.both / facts), "with both dates"),
  );
}

function tile(value, name) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value));
}

/** The defects that spoil results. */
export function defects(found) {
  const listed = DEFECTS.map(([kind, name, meaning]) => ({
    name,
    meaning,
    rows: some(found[kind]),
  }));
  const wrong = listed.filter(({ rows }) => rows.length > 0);
  const years = found.absurd_years;
  if (wrong.length === 0 && years.length === 0)
    return el("p", { class: "notice" }, "No defects were found.");
  return el(
    "ul",
    { class: "defects" },
    wrong.map(({ name, meaning, rows }) =>
      defect(
        name,
        meaning,
        rows.map(([place, number]) => `${place}: ${count(number)}`),
      ),
    ),
    years.length > 0 &&
      defect(
        "Implausible years",
        "Mostly mistyped or truncated dates.",
        years.slice(0, 8).map(({ year, dates }) => `${year}: ${counted(dates, "date")}`),
      ),
  );
}

function defect(name, meaning, places) {
  return el(
    "li",
    {},
    el("strong", {}, name),
    " ",
    el("span", { class: "meaning" }, meaning),
    el(
      "ul",
      { class: "places" },
      places.map((place) => el("li", {}, place)),
    ),
  );
}

const some = (counts) => Object.entries(counts ?? {}).filter(([, number]) => number > 0);

/** Each split and all of them together. */
export function splitsTable(splits) {
  const rows = Object.entries(splits).map(([name, { facts, entities, relations, dates }]) => [
    name,
    count(facts),
    count(entities),
    count(relations),
    dates.first ? `${dates.first} – ${dates.last}` : "none",
    ...known(dates, facts),
  ]);
  return table(
    "Splits",
    ["Split", "Facts", "Entities", "Relations", "Dates", "Both dates", "One", "None"],
    rows,
  );
}

/** Each relation, the most frequent first. */
export function relationsTable(relations) {
  const rows = relations.map(({ name, facts, subjects, objects, dates }) => {
    const total = Object.values(facts).reduce((sum, number) => sum + number, 0);
    return [
      name,
      count(total),
      count(subjects),
      count(objects),
      dates.first ? `${dates.first} – ${dates.last}` : "none",
      ...known(dates, total),
    ];
  });
  return table(
    "Relations",
    ["Relation", "Facts", "Subjects", "Objects", "Dates", "Both dates", "One", "None"],
    rows,
  );
}

function known({ both, start_only: startOnly, end_only: endOnly, none }, facts) {
  const share = facts ? both / facts : 0;
  return [[percent(share), bar(share, SHARE)], count(startOnly + endOnly), count(none)];
}

function table(name, columns, rows) {
  const cell = (content, column) =>
    column === 0 ? el("th", { scope: "row" }, content) : el("td", { class: "number" }, content);
  return el(
    "div",
    { class: "scroll", tabindex: "0", role: "group", "aria-label": name },
    el(
      "table",
      { class: "figures-table" },
      el(
        "thead",
        {},
        el(
          "tr",
          {},
          columns.map((column) => el("th", { scope: "col" }, column)),
        ),
      ),
      el(
        "tbody",
        {},
        rows.map((row) => el("tr", {}, row.map(cell))),
      ),
    ),
  );
}
