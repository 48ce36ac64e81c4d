/** Facts over time: bars, stacked by split. */

import { across, axis } from "./axis.js";
import { el, svg } from "./dom.js";
import { count, counted } from "./words.js";

const STEPS = [1, 1.5, 2, 2.5, 3, 4, 5];

/** The chart with its legend. `bins` are the starts of bars, and the end of the last. */
export function factsOverTime({ bins, texts, splits, unknown, outside }, unit) {
  const names = Object.keys(splits);
  const totals = bins
    .slice(0, -1)
    .map((_, bin) => names.reduce((sum, name) => sum + splits[name][bin], 0));
  const top = roundUp(Math.max(1, ...totals));
  const { place, ticks } = axis(bins[0], bins.at(-1) - 1, unit, 8);
  const bars = totals.map((total, bin) => {
    const x = place(bins[bin]);
    const width = place(bins[bin + 1]) - x;
    let reached = 0;
    const parts = names.map((name) => {
      const share = splits[name][bin] / top;
      reached += share;
      return svg("rect", {
        class: `split-${name}`,
        x: across(x + width * 0.06),
        width: across(width * 0.88),
        y: across(1 - reached),
        height: across(share),
      });
    });
    return svg("g", {}, svg("title", {}, `from ${texts[bin]}: ${counted(total, "fact")}`), parts);
  });
  const lines = [0, 0.5, 1].map((share) => [
    svg("line", {
      class: "grid",
      x1: "0",
      x2: "100%",
      y1: across(1 - share),
      y2: across(1 - share),
    }),
    svg(
      "text",
      { class: "tick", x: "-8", y: across(1 - share), dy: "0.32em", "text-anchor": "end" },
      count(top * share),
    ),
  ]);
  const labels = ticks.map(({ at, text }) =>
    svg(
      "text",
      { class: "tick", x: across(place(at)), y: "100%", dy: "1.5em", "text-anchor": "middle" },
      text,
    ),
  );
  return el(
    "figure",
    { class: "chart" },
    svg(
      "svg",
      { class: "chart-plot", role: "img", "aria-label": describe(texts, totals) },
      lines,
      bars,
      labels,
    ),
    el(
      "figcaption",
      {},
      names.map((name) => el("span", { class: `key split-${name}` }, name)),
      unknown > 0 && el("span", {}, `${counted(unknown, "fact")} without a start`),
      outside > 0 && el("span", {}, `${count(outside)} outside the axis`),
    ),
  );
}

function describe(texts, totals) {
  const most = totals.indexOf(Math.max(...totals));
  const [first, last] = [texts[0], texts.at(-1)];
  return (
    `Facts by start, ${first} to ${last}; most from ${texts[most]} to ${texts[most + 1]}: ` +
    count(totals[most])
  );
}

/** The next larger round and even number. */
function roundUp(number) {
  for (let power = 2; ; power *= 10) {
    const found = STEPS.map((step) => step * power).find((top) => top >= number && top % 2 === 0);
    if (found) return found;
  }
}
