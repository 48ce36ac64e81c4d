/** Numbers as bars. The number itself stands beside each, for screen readers. */

import { svg } from "./dom.js";

/** The range of bars for some numbers; it includes 0. */
export function roomFor(numbers) {
  const low = Math.min(0, ...numbers);
  const high = Math.max(0, ...numbers);
  return { low, span: high - low || 1 };
}

/** A bar from 0 to a number; below 0 it points left. */
export function bar(number, { low, span }) {
  const zero = -low / span;
  const width = Math.abs(number) / span;
  const x = number < 0 ? zero - width : zero;
  return svg(
    "svg",
    { class: "bar", "aria-hidden": "true" },
    svg("rect", { class: "bar-room", width: "100%", height: "100%" }),
    svg("rect", {
      class: number < 0 ? "bar-against" : "bar-for",
      x: `${100 * x}%`,
      width: `${100 * width}%`,
      height: "100%",
    }),
  );
}
