/** A text field that completes names as they are typed: the ARIA combobox with a list. */

import { announce, el, freshId } from "./dom.js";
import { counted } from "./words.js";

const PAUSE = 120; // ms after the last key before a request is sent

/**
 * A labelled field with completion.
 *
 * @param label what the field is for.
 * @param find (text, signal) → a promise of [{name, note}], best first.
 * @param choose called with a name that was chosen from the list.
 */
export function combobox({ label, find, choose = () => {} }) {
  const id = freshId("field");
  const list = el("ul", {
    class: "options",
    role: "listbox",
    id: `${id}-list`,
    "aria-label": label,
    hidden: true,
  });
  const input = el("input", {
    id,
    type: "text",
    role: "combobox",
    required: true,
    autocomplete: "off",
    autocapitalize: "off",
    spellcheck: "false",
    "aria-autocomplete": "list",
    "aria-controls": list.id,
    "aria-expanded": "false",
    oninput: () => suggest(PAUSE),
    onkeydown: press,
    onblur: close,
    onclick: () => suggest(0),
  });
  const caption = el("label", { for: id }, label);
  const element = el(
    "div",
    { class: "field" },
    caption,
    el("div", { class: "anchor" }, input, list),
  );
  let options = [];
  let active = -1; // index of the option that Enter takes
  let searching = false; // whether new options are being loaded
  let controller = new AbortController();

  /** Finds names after a pause, then moves among them by a step. */
  async function suggest(pause, step = 0) {
    controller.abort();
    const { signal } = (controller = new AbortController());
    searching = true;
    try {
      await new Promise((resolve) => setTimeout(resolve, pause));
      if (signal.aborted) return;
      const found = await find(input.value.trim(), signal);
      if (signal.aborted) return;
      open(found);
      move(step);
    } catch {
      // The field works without suggestions; the query itself shows the error.
      if (!signal.aborted) close();
    }
  }

  function open(found) {
    searching = false;
    options = found.map(({ name, note }, place) =>
      el(
        "li",
        {
          role: "option",
          id: `${id}-${place}`,
          "aria-selected": "false",
          onpointerdown: (event) => event.preventDefault(), // keeps the focus in the field
          onclick: () => take(place),
        },
        el("span", { class: "option-name" }, name),
        note && el("span", { class: "option-note" }, note),
      ),
    );
    list.replaceChildren(...options);
    list.hidden = options.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    point(-1);
    announce(options.length ? counted(options.length, "suggestion") : "No suggestion");
  }

  function close() {
    controller.abort();
    searching = false;
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    point(-1);
  }

  function move(step) {
    if (step === 0 || options.length === 0) return;
    const from = active < 0 && step < 0 ? 0 : active;
    point((from + step + options.length) % options.length);
  }

  function point(place) {
    options[active]?.setAttribute("aria-selected", "false");
    active = place;
    const option = options[active];
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    if (option) input.setAttribute("aria-activedescendant", option.id);
    else input.removeAttribute("aria-activedescendant");
  }

  function take(place) {
    input.value = options[place].querySelector(".option-name").textContent;
    close();
    choose(input.value);
  }

  function press(event) {
    const isOpen = !list.hidden;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) {
      event.preventDefault();
      if (isOpen && !searching) move(step);
      else suggest(0, step);
    } else if (event.key === "Enter") {
      if (isOpen && active >= 0) {
        event.preventDefault(); // the choice is made first, the form sent with the next Enter
        take(active);
      } else close();
    } else if (event.key === "Escape" && isOpen) {
      event.preventDefault();
      close();
    }
  }

  return {
    element,
    get value() {
      return input.value.trim();
    },
    set value(text) {
      input.value = text;
    },
    set label(text) {
      caption.textContent = text;
      list.setAttribute("aria-label", text);
    },
  };
}
