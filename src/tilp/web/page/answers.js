/** Ranked answers, each of which opens its reasons. */

import { bar, roomFor } from "./bars.js";
import { combobox } from "./combobox.js";
import { findEntities } from "./completion.js";
import { el, freshId } from "./dom.js";
import { explained } from "./explanation.js";
import { region } from "./region.js";
import { percent } from "./words.js";

/**
 * The list of answers, and below it other candidates that people explain.
 *
 * @param answers as the service gives them.
 * @param unit the unit of time.
 * @param explain (candidate, choice, signal) → a promise of its explanation; candidates are ids or
 *   names.
 * @param change called with changes of the choice, when people make one: `why`, the candidates
 *   whose reasons are open; `against`, the candidate to compare with; `without`, the facts to leave
 *   out. `unfold` with the choice shows it.
 */
export function answerList(answers, unit, explain, change) {
  const room = roomFor(answers.map(({ share }) => share));
  const others = el("ol", { class: "answers" });
  const names = answers.map(({ candidate, share }) => ({ name: candidate, note: percent(share) }));
  const shown = new Map(); // candidate → its button, its panel, the choice that the panel shows
  let open = [];

  /** An answer; for a candidate outside the list only the name is known. */
  function item({ rank, candidate, id = candidate, share, known }) {
    const panel = region({ class: "panel", id: freshId("why"), hidden: true });
    const button = el(
      "button",
      {
        type: "button",
        class: "answer",
        "aria-expanded": "false",
        "aria-controls": panel.element.id,
        onclick: () => toggle(id),
      },
      el("span", { class: "rank" }, rank ?? "·"),
      el(
        "span",
        { class: "candidate" },
        el("span", { class: "name" }, candidate),
        known && [" ", el("span", { class: "badge" }, "known")],
      ),
      share !== undefined &&
        el(
          "span",
          { class: "share" },
          bar(share, room),
          el("span", { class: "number" }, percent(share)),
        ),
    );
    shown.set(id, { button, panel, filled: null });
    return el("li", { class: "card" }, el("h3", {}, button), panel.element);
  }

  function toggle(candidate) {
    change({ why: open.includes(candidate) ? without(candidate) : [...open, candidate] });
  }

  /** Opens a candidate, instead of another one if that is given. */
  function look(candidate, insteadOf) {
    change({ why: [...without(candidate).filter((one) => one !== insteadOf), candidate] });
    shown.get(candidate).button.focus();
  }

  const without = (candidate) => open.filter((one) => one !== candidate);

  /** Opens the reasons of the chosen candidates, and closes all others. */
  function unfold({ why, ...choice }) {
    open = why;
    const wanted = JSON.stringify(choice);
    for (const name of open.filter((one) => !shown.has(one)))
      others.append(item({ candidate: name }));
    for (const [candidate, one] of shown) {
      const isOpen = open.includes(candidate);
      one.button.setAttribute("aria-expanded", String(isOpen));
      one.panel.element.hidden = !isOpen;
      if (isOpen && one.filled !== wanted) fill(candidate, one, choice, wanted);
    }
  }

  async function fill(candidate, one, choice, wanted) {
    const hadFocus = one.filled !== null && one.panel.element.contains(document.activeElement);
    one.filled = wanted;
    await one.panel.load(
      (signal) => explain(candidate, choice, signal),
      (found) => explained(found, candidate, unit, names, change),
      (name) => look(name, candidate),
    );
    // What had the focus is gone.
    if (hadFocus) (one.panel.element.querySelector(".what-if, .why") ?? one.button).focus();
  }

  /** Puts the focus on an answer by its index. */
  function focus(place) {
    list.children[place]?.querySelector("button").focus();
  }

  const list = el("ol", { class: "answers" }, answers.map(item));
  return { list, others: [others, otherOne(look)], unfold, focus };
}

/** A field for a candidate that is not among the answers. */
function otherOne(look) {
  const other = combobox({ label: "Explain another candidate", find: findEntities, choose: look });
  const submit = (event) => {
    event.preventDefault();
    look(other.value);
  };
  return el(
    "form",
    { class: "one-line", "aria-label": "Another candidate", onsubmit: submit },
    other.element,
    el("button", { type: "submit", class: "quiet" }, "Explain"),
  );
}
