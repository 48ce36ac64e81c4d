/** Links to the pages of a long list. */

import { el } from "./dom.js";
import { count } from "./words.js";

/**
 * Links to the page before and after, or null where all stands on one page.
 *
 * @param page the present one, from 1.
 * @param pages how many there are.
 * @param to page → its address.
 */
export function pager(page, pages, to) {
  if (pages <= 1) return null;
  const step = (text, target, shown) =>
    shown
      ? el("a", { class: "button quiet", href: to(target) }, text)
      : el("span", { class: "button quiet off" }, text);
  return el(
    "nav",
    { class: "pager", "aria-label": "Pages" },
    step("← Previous", page - 1, page > 1),
    el("span", {}, `Page ${count(page)} of ${count(pages)}`),
    step("Next →", page + 1, page < pages),
  );
}
