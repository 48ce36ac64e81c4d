/** The server's pictures, taken into the page so that they follow its colours. */

import { el, freshId } from "./dom.js";

/** The inline style of the root, which the content policy refuses and the style sheet replaces. */
const STYLE = /(?<=^<svg[^>]*) style="[^"]*"/;
const STRANGE = "parsererror, script, foreignObject, iframe, image, a";

/** A box for a picture; `ask` gives a promise of its SVG, and is called when the box is near. */
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

/** An SVG text as an element of this page; null if it is no picture, or has unsafe elements. */
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

/** Calls back once, when the element is near the viewport. */
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

/** Gives a picture unique ids, since several share the page. */
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
