/** The server's pictures, taken into the page so that they follow its colours. */

import { el, freshId } from "./dom.js";

/** The first tag's own style, which this page's rules for content refuse and its sheet replaces. */
const STYLE = /(?<=^<svg[^>]*) style="[^"]*"/;
const STRANGE = "parsererror, script, foreignObject, iframe, image, a";

/** A place for a picture, which `ask` gives as a promise of SVG: asked for when it is seen. */
export function pictureWhenSeen(ask) {
  const place = el("div", { class: "scroll picture-place" });
  whenSeen(place, async () => {
    try {
      place.replaceChildren(picture(await ask()) ?? "");
    } catch {
      place.textContent = "The picture could not be loaded.";
    }
  });
  return place;
}

/** An SVG text as an element of this page; null if it is no picture or holds more than one. */
function picture(text) {
  const root = new DOMParser().parseFromString(
    text.replace(STYLE, ""),
    "image/svg+xml",
  ).documentElement;
  if (root.localName !== "svg" || root.querySelector(STRANGE)) return null;
  const drawn = document.importNode(root, true);
  renameIds(drawn);
  drawn.classList.add("picture");
  return drawn;
}

/** Calls back once, when the element is about to be seen. */
function whenSeen(element, callback) {
  const observer = new IntersectionObserver(
    ([entry]) => {
      if (!entry.isIntersecting) return;
      observer.disconnect();
      callback();
    },
    { rootMargin: "300px" },
  );
  observer.observe(element);
}

/** Several pictures share a page: each gets ids of its own, wherever it refers to them. */
function renameIds(root) {
  const fresh = new Map(
    [...root.querySelectorAll("[id]")].map((node) => [node.id, freshId("picture")]),
  );
  for (const node of [root, ...root.querySelectorAll("*")]) {
    for (const attribute of node.attributes) attribute.value = renamed(attribute, fresh);
  }
}

function renamed({ name, value }, fresh) {
  if (name === "id") return fresh.get(value) ?? value;
  if (name.startsWith("aria-")) {
    return value
      .split(" ")
      .map((word) => fresh.get(word) ?? word)
      .join(" ");
  }
  return value.replace(/#([\w-]+)/g, (whole, id) => (fresh.has(id) ? `#${fresh.get(id)}` : whole));
}
