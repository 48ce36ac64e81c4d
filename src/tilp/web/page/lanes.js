/** Facts on a time axis beside the query's time, for screens that are too narrow for pictures. */

import { across, axis, timeOf } from "./axis.js";
import { svg } from "./dom.js";
import { scale, track } from "./timeline.js";

/**
 * The axis of some facts: `lane` draws one of them, `scale` the ticks; null if there are no dates.
 *
 * @param facts as explanations have them.
 * @param query whose dates are a band across all lanes.
 * @param unit the unit of time.
 */
export function lanes(facts, query, unit) {
  const dated = ({ start, end }) => ({
    start: start ?? "",
    end: end ?? "",
    from: timeOf(start, unit),
    to: timeOf(end, unit, true),
  });
  const asked = dated(query);
  const times = [asked, ...facts.map(dated)]
    .flatMap(({ from, to }) => [from, to])
    .filter((time) => time !== null);
  if (times.length === 0) return null;
  const drawn = axis(Math.min(...times), Math.max(...times), unit, 3);
  return {
    lane: (fact) => track(dated(fact), drawn, band(asked, drawn)),
    scale: () => scale(drawn),
  };
}

function band({ from, to }, { place }) {
  const [left, right] = [from ?? to, to ?? from];
  if (left === null) return null;
  const width = across(Math.max(place(right + 1) - place(left), 0.006));
  return svg("rect", { class: "lane-band", x: across(place(left)), width, y: "0", height: "100%" });
}
