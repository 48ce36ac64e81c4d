/** Elements made in code. Names and labels only ever enter as text, so none can become markup. */

const SVG = "http://www.w3.org/2000/svg";
let made = 0;

/**
 * An HTML element.
 *
 * Attributes that are null, undefined or false are left out; `onclick` and the like are functions.
 * Children are nodes or text, in lists if that is handy; null and false are left out.
 */
export function el(tag, attributes, ...children) {
  return furnish(document.createElement(tag), attributes, children);
}

/** An SVG element, with the same arguments. */
export function svg(tag, attributes, ...children) {
  return furnish(document.createElementNS(SVG, tag), attributes, children);
}

/** An id that no other element has. */
export function freshId(word) {
  made += 1;
  return `${word}-${made}`;
}

/** Announces a change to screen readers. */
export function announce(text) {
  document.getElementById("announcements").textContent = text;
}

function furnish(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (typeof value === "function") node.addEventListener(name.replace(/^on/, ""), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(name, value);
  }
  node.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return node;
}
