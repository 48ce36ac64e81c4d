/** Labelled fields of forms. */

import { el, freshId } from "./dom.js";

/** An input or a select with its label. */
export function field(label, control) {
  control.id = freshId("field");
  return el("div", { class: "field" }, el("label", { for: control.id }, label), control);
}

/** A select; `choices` are pairs of a value and its text. */
export function select(choices) {
  return el(
    "select",
    {},
    choices.map(([value, text]) => el("option", { value }, text)),
  );
}

/** Radio buttons side by side, of which one is chosen. */
export function segments(legend, choices, change = () => {}) {
  const name = freshId("choice");
  const inputs = choices.map(([value]) =>
    el("input", { type: "radio", name, value, id: freshId(name), onchange: () => change(value) }),
  );
  const element = el(
    "fieldset",
    { class: "segments" },
    el("legend", {}, legend),
    el(
      "div",
      { class: "segments-row" },
      choices.map(([, text], place) => [
        inputs[place],
        el("label", { for: inputs[place].id }, text),
      ]),
    ),
  );
  return {
    element,
    get value() {
      return inputs.find((input) => input.checked)?.value;
    },
    set value(chosen) {
      for (const input of inputs) input.checked = input.value === chosen;
    },
  };
}
