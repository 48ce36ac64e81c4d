/** The address of a view and all its state: `#/ask?subject=Ada&relation=playsFor`. */

/** The view and the parameters that the address names; the view is '' where it names none. */
export function here() {
  const [path, search = ""] = location.hash.replace(/^#\/?/, "").split(/\?(.*)/s);
  return { view: path, params: new URLSearchParams(search) };
}

/**
 * The address of a view in some state.
 *
 * Empty values are left out; a list stands as the same parameter several times.
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

/** Goes to an address as a new step of the history; to the present one, once more. */
export function go(view, state) {
  const target = address(view, state);
  if (location.hash === target) window.dispatchEvent(new HashChangeEvent("hashchange"));
  else location.hash = target;
}

/** Goes to an address in place of the present one: the back button does not see it. */
export function amend(view, state) {
  history.replaceState(null, "", address(view, state));
  window.dispatchEvent(new HashChangeEvent("hashchange"));
}

/** Calls back with every new address, and with the present one at once. */
export function listen(callback) {
  window.addEventListener("hashchange", () => callback(here()));
  callback(here());
}
