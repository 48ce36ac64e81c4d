/** The address of a view and all its state: `#/ask?subject=Ada&relation=playsFor`. */

/** The view and the parameters in the address; the view is '' if there is none. */
export function here() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path, params: new URLSearchParams(search) };
}

/**
 * The address of a view in some state.
 *
 * Empty values are left out; a list repeats its parameter.
 */
export function address(view, state = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(state)) {
    for (const one of [value].flat()) {
      if (one !== "" && one !== null && one !== undefined && one !== false)
        params.append(name, one);
    }
  }
  const search = params.toString();
  return `#/${view}${search ? `?${search}` : ""}`;
}

/** Goes to an address as a new entry of the history; reloads the present one. */
export function go(view, state) {
  const target = address(view, state);
  if (location.hash === target) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = target;
}

/** Replaces the address, without an entry in the history. */
export function amend(view, state) {
  history.replaceState(null, "", address(view, state));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Calls back with the address now and after every change. */
export function listen(callback) {
  window.addEventListener("hashchange", () => callback(here()));
  callback(here());
}
