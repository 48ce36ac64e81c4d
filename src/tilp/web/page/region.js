/** A part of a view that shows a response: loading, the result, or the error. */

import { ApiError } from "./api.js";
import { announce, el } from "./dom.js";

/** Codes of errors that a retry may fix. */
const PASSING = new Set(["gone", "busy", "too_slow", "starting", "defect"]);
const PATIENCE = 150; // ms before the spinner is shown, so that it does not flash

/**
 * A part of the page that one request at a time fills.
 *
 * `load(ask, draw, choose)` calls `ask` with an abort signal and draws the result; a new load
 * aborts the one before. On failure it shows the message, with similar names as buttons that call
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

  /** Scrolls to it and gives it the focus, since the link that had it is gone. */
  function reveal() {
    element.tabIndex = -1;
    element.focus({ preventScroll: true });
    element.scrollIntoView();
  }

  return { element, show, load, reveal };
}

/** The spinner. */
export function loading(text = "Loading …") {
  return el(
    "p",
    { class: "loading" },
    el("span", { class: "spinner", "aria-hidden": "true" }),
    text,
  );
}

/** The message of an empty region. */
export function empty(title, ...hints) {
  return el("div", { class: "empty" }, el("p", { class: "empty-title" }, title), hints);
}

/** An error, and what people can do about it. */
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
