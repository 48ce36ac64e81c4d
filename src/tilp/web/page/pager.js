/** Links to the pages of a long list. */

import { el } from "./dom.js";
import { count } from "./words.js";

/** The page that an address names; the first by default. */
export function pageNumber(params) {
  return Math.max(1, Number.parseInt(params.get("page"), 10) || 1);
}

/**
 * Links to the page before and after, or null if there is only one page.
 *
 * @param page the present one, from 1.
 * @param pages how many there are.
 * @param to a page's number, '' for the first → its address.
 */
export function pager(page, pages, to) {
  if (pages <= 1) return null;
  const step = (text, target) =>
    el("a", { class: "button quiet", href: to(target === 1 ? "" : target) }, text);
  return el(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    page > 1 && step("← Previous", page - 1),
    el("span", {}, `Page ${count(page)} of ${count(pages)}`),
    page < pages && step("Next →", page + 1),
  );
}
