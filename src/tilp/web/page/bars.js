/** Numbers as bars. They stand beside the number itself, so that readers of text miss nothing. */

import { svg } from "./dom.js";

/** The room that bars need for some numbers: from the least, or 0, to the greatest, or 0. */
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
