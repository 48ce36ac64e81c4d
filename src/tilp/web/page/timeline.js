/** Facts as a table whose last column is a time axis. */

import { across, axis } from "./axis.js";
import { el, svg } from "./dom.js";
import { origin } from "./known.js";
import { address } from "./router.js";
import { dates } from "./words.js";

/** Texts of open dates: the interval reaches to the end of the axis. */
const OPEN = new Set(["present", "now", "ongoing", "open", ".."]);

/**
 * The facts of an entity, a row each.
 *
 * @param entity its name; the other ends of its facts are links.
 * @param facts as the service gives them.
 * @param unit the unit of time.
 */
export function timeline(entity, facts, unit) {
  const times = facts.flatMap(({ from, to }) => [from, to]).filter((time) => time !== null);
  const drawn = times.length > 0 && axis(Math.min(...times), Math.max(...times), unit);
  return el(
    "table",
    { class: "timeline" },
    el("caption", { class: "unseen" }, `Facts of ${entity}`),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        el("th", { scope: "col" }, "Fact"),
        el("th", { scope: "col" }, "When"),
        el(
          "th",
          { scope: "col", class: "track" },
          el("span", { class: "unseen" }, "On the axis"),
          drawn && scale(drawn),
        ),
        el("th", { scope: "col" }, el("span", { class: "unseen" }, "Ask")),
      ),
    ),
    el(
      "tbody",
      {},
      facts.map((fact) => row(entity, fact, drawn)),
    ),
  );
}

function row(entity, fact, drawn) {
  const { subject, relation, object, start, end, split } = fact;
  const linked = (name) =>
    name === entity
      ? el("strong", {}, name)
      : el("a", { href: address("data", { entity: name }) }, name);
  const question = address("ask", { subject, relation, start, end });
  return el(
    "tr",
    {},
    el("td", { class: "fact" }, linked(subject), ` ${relation} `, linked(object), origin(fact)),
    el(
      "td",
      { class: "when" },
      dates(start, end),
      split !== "train" && [" ", el("span", { class: "badge" }, split)],
    ),
    el("td", { class: "track" }, drawn && track(fact, drawn)),
    el(
      "td",
      { class: "go" },
      el(
        "a",
        { href: question, "aria-label": `Ask: ${subject} ${relation} whom or what?` },
        "Ask",
      ),
    ),
  );
}

/** The ticks above the rows. */
export function scale({ place, ticks }) {
  const side = (at) => (place(at) > 0.85 ? "end" : "start"); // within the axis
  const texts = ticks.map(({ at, text }) =>
    svg("text", { class: "tick", x: across(place(at)), y: "1em", "text-anchor": side(at) }, text),
  );
  return svg("svg", { class: "scale", "aria-hidden": "true" }, texts);
}

/** One fact on the axis: its interval, or a dot if only one date is known; others are behind it. */
export function track(fact, { place, ticks }, ...behind) {
  const grid = ticks.map(({ at }) =>
    svg("line", {
      class: "grid",
      x1: across(place(at)),
      x2: across(place(at)),
      y1: "0",
      y2: "100%",
    }),
  );
  return svg("svg", { class: "lane", "aria-hidden": "true" }, grid, behind, mark(fact, place));
}

function mark({ start, end, from, to }, place) {
  const left = from !== null ? place(from) : OPEN.has(start.toLowerCase()) ? 0 : null;
  const right = to !== null ? place(to + 1) : OPEN.has(end.toLowerCase()) ? 1 : null;
  if (left === null && right === null) return null;
  if (left === null || right === null) {
    return svg("circle", { class: "span-dot", cx: across(left ?? right), cy: "50%", r: "4" });
  }
  return svg("rect", {
    class: "span",
    x: across(left),
    width: across(Math.max(right - left, 0.006)),
    y: "30%",
    height: "40%",
    rx: "3",
  });
}
