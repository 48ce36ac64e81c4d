/** A part of a view that shows what the server says: waiting, the answer, or what went wrong. */

import { ApiError } from "./api.js";
import { announce, el } from "./dom.js";

/** What may be gone when one tries again. */
const PASSING = new Set(["gone", "busy", "too_slow", "starting", "defect"]);
const PATIENCE = 150; // ms before a wait is worth showing; a flash is worse than nothing

/**
 * A part of the page that one request at a time fills.
 *
 * `load(ask, draw, choose)` asks with a signal to stop by and draws the answer; a new load stops
 * the one before. On failure it shows the message, with near names as buttons that call
 * `choose(name)`, or a button that tries again.
 */
export function region(attributes) {
  const element = el("div", { class: "region", ...attributes });
  let controller = new AbortController();

  function show(...children) {
    controller.abort();
    settle(children);
  }

  function settle(children) {
    element.removeAttribute("aria-busy");
    element.replaceChildren(...children);
  }

  async function load(ask, draw, choose) {
    controller.abort();
    const mine = (controller = new AbortController());
    element.setAttribute("aria-busy", "true");
    const waiting = setTimeout(() => element.replaceChildren(loading()), PATIENCE);
    try {
      const answer = await ask(mine.signal);
      if (!mine.signal.aborted) settle([draw(answer)].flat());
    } catch (error) {
      if (mine.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      settle([failure(error, choose, () => load(ask, draw, choose))]);
    } finally {
      clearTimeout(waiting);
    }
  }

  /** Brings it into sight, and those who use the keyboard to it: what they used is gone. */
  function reveal() {
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    element.scrollIntoView();
  }

  return { element, show, load, reveal };
}

/** What is shown while the server is asked. */
export function loading(text = "Loading …") {
  return el(
    "p",
    { class: "loading" },
    el("span", { class: "spinner", "aria-hidden": "true" }),
    text,
  );
}

/** What is shown where there is nothing to show. */
export function empty(title, ...hints) {
  return el("div", { class: "empty" }, el("p", { class: "empty-title" }, title), hints);
}

/** What went wrong, and what can be done about it. */
export function failure(error, choose, retry) {
  announce(error.message);
  const near = choose ? error.near : [];
  return el(
    "div",
    { class: "notice wrong" },
    el("p", {}, error.message),
    near.length > 0 &&
      el(
        "p",
        { role: "group", "aria-label": "Similar names" },
        near.map((name) =>
          el("button", { type: "button", class: "chip", onclick: () => choose(name) }, name),
        ),
      ),
    PASSING.has(error.code) &&
      el("button", { type: "button", class: "quiet", onclick: retry }, "Try again"),
  );
}
