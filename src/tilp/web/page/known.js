/** Facts as sentences, and the facts that answer a query already. */

import { el } from "./dom.js";
import { address } from "./router.js";
import { count, dates } from "./words.js";

/** A fact in words; its entities are links to their facts. */
export function factWords({ subject, relation, object, start, end }) {
  const linked = (name) => el("a", { href: address("data", { entity: name }) }, name);
  const when = el("span", { class: "when" }, dates(start, end));
  return [linked(subject), ` ${relation} `, linked(object), ", ", when];
}

/** The file and line that a fact was read from; nothing if that is not known. */
export function origin({ source }) {
  return source !== "unknown" && [" ", el("span", { class: "origin" }, source)];
}

/** The facts that answer a query at its time, before all predictions; null if there are none. */
export function knownFacts(facts, total) {
  if (facts.length === 0) return null;
  const more = total - facts.length;
  return el(
    "section",
    { class: "known-facts card" },
    el("h3", {}, "The data already say"),
    el(
      "ul",
      {},
      facts.map((fact) => el("li", {}, factWords(fact), origin(fact))),
    ),
    more > 0 && el("p", { class: "rest" }, `and ${count(more)} more`),
  );
}
