/** A button that copies the address of the view. */

import { announce, el } from "./dom.js";

const SHOWN = 2000; // ms

/** The button; the address is that at the time of the click. */
export function copyLink() {
  const button = el("button", { type: "button", class: "quiet", onclick: copy }, "Copy link");

  async function copy() {
    const text = (await written(location.href)) ? "Link copied" : "Copy the address above";
    button.textContent = text;
    announce(text);
    setTimeout(() => (button.textContent = "Copy link"), SHOWN);
  }

  return button;
}

/** Whether the text is on the clipboard now; browsers refuse where a page is not served safely. */
async function written(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false;
  }
}
