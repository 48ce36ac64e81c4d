/** When a fact holds: its dates on a time axis, other intervals, and the reasons. */

import { across, axis, timeOf } from "./axis.js";
import { el, svg } from "./dom.js";
import { dates, percent, term } from "./words.js";

const REASONS = 6;
const SIDES = ["start", "end"];

/** The answer to a question about time, as the service gives it. */
export function whenAnswer(found, unit) {
  const [best] = found.intervals;
  const sides = SIDES.filter((side) => found[side]);
  return [
    el("p", { class: "when-best" }, el("strong", {}, dates(best.start, best.end)), ` · ${percent(best.probability)}`),
    el("p", { class: "kind" }, "The interval that overlaps most with what is likely."),
    ...found.notes.map((note) => el("p", { class: "notice" }, note)),
    distribution(found, sides, unit),
    el("ul", { class: "when-bounds" }, sides.map((side) => el("li", {}, inWords(side, found[side])))),
    el("h3", {}, "Reasons"),
    reasons(found.reasons),
    el("h3", {}, "Other intervals"),
    el(
      "ol",
      { class: "when-others" },
      found.intervals.slice(1, 6).map(({ start, end, probability }) =>
        el("li", {}, `${dates(start, end)} · ${percent(probability)}`),
      ),
    ),
  ];
}

/** The answer as one sentence, for screen readers. */
export function whenWords(found) {
  const [best] = found.intervals;
  return `Most likely ${dates(best.start, best.end)}, ${percent(best.probability)}.`;
}

function inWords(side, { most_likely: date, credible }) {
  const [low, high] = credible["80%"];
  const [from, to] = credible["50%"];
  return `${side}: most likely ${date}; 50 % between ${from} and ${to}, 80 % between ${low} and ${high}`;
}

/** Bars of the probability of each date, the 80 % bands behind, the best interval below. */
function distribution(found, sides, unit) {
  const [best] = found.intervals;
  const interval = [timeOf(best.start, unit), timeOf(best.end, unit, true)];
  const band = (side) => found[side].credible["80%"].map((date) => timeOf(date, unit));
  const times = [...interval, ...sides.flatMap(band)].filter((time) => time !== null);
  const [first, last] = [Math.min(...times), Math.max(...times)];
  const margin = Math.ceil((last - first) * 0.15) + 1;
  const [low, high] = [first - margin, last + margin];
  const { place, ticks } = axis(low, high, unit, 8);
  const step = place(low + 1);
  const shown = sides.flatMap((side) => found[side].distribution.map((one) => ({ ...one, side })));
  const inside = shown.filter(({ time }) => time >= low && time <= high);
  const top = Math.max(...inside.map(({ probability }) => probability), 0.01);
  const width = Math.max(step * (sides.length > 1 ? 0.44 : 0.88), 0.003);
  const bars = inside.map(({ time, date, probability, side }) =>
    svg(
      "rect",
      {
        class: `when-${side}`,
        x: across(place(time) + (side === "end" && sides.length > 1 ? step / 2 : 0)),
        width: across(width),
        y: across(0.86 * (1 - probability / top)),
        height: across((0.86 * probability) / top),
      },
      svg("title", {}, `${side} ${date}: ${percent(probability)}`),
    ),
  );
  const bands = sides.map((side) => {
    const [from, to] = band(side);
    return svg("rect", { class: `when-band when-${side}`, x: across(place(from)), width: across(place(to + 1) - place(from)), y: "0", height: "86%" });
  });
  const chosen = svg("rect", {
    class: "when-interval", x: across(place(interval[0])), y: "90%", height: "7%", rx: "3",
    width: across(Math.max(place(interval[1] + 1) - place(interval[0]), 0.004)),
  });
  const labels = ticks.map(({ at, text }) =>
    svg("text", { class: "tick", x: across(place(at)), y: "100%", dy: "1.5em", "text-anchor": "middle" }, text),
  );
  const about = sides.map((side) => inWords(side, found[side])).join(". ");
  return el(
    "figure",
    { class: "chart" },
    svg("svg", { class: "chart-plot", role: "img", "aria-label": `Probability of each date. ${about}` }, bands, bars, chosen, labels),
    el(
      "figcaption",
      {},
      sides.map((side) => el("span", { class: `key when-${side}` }, side)),
      el("span", { class: "key when-interval" }, "best interval"),
      el("span", {}, "shaded: 80 % of the probability"),
    ),
  );
}

/** The strongest reasons; their amounts add up to the logit of the date against the prior. */
function reasons(found) {
  return el(
    "ol",
    { class: "when-reasons" },
    found.slice(0, REASONS).map(({ side, sentence, contribution }) =>
      el("li", {}, el("span", { class: "number" }, term(contribution)), " ", el("span", { class: "badge" }, side), " ", sentence),
    ),
  );
}
