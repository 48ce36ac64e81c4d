/** Starts the page: the model that is served, and the view that the address names. */

import * as api from "./api.js";
import { el } from "./dom.js";
import { empty, failure, loading } from "./region.js";
import { address, here, listen } from "./router.js";
import { askView } from "./view-ask.js";
import { dataView } from "./view-data.js";
import { rulesView } from "./view-rules.js";
import { count, counted } from "./words.js";

const VIEWS = { ask: askView, rules: rulesView, data: dataView };
const PAUSE = 1000; // ms between two checks whether the model is loaded

const main = document.getElementById("main");
const links = [...document.querySelectorAll("nav [data-view]")];

/** Loads the model and its relations for all views; waits until the model is warm. */
async function prepare() {
  for (;;) {
    try {
      const [model, relations] = await Promise.all([api.model(), api.relations()]);
      return { model, relations };
    } catch (error) {
      if (!(error instanceof api.ApiError)) throw error;
      if (error.code === "starting") await shown(loading(error.message), PAUSE);
      else await new Promise((again) => main.replaceChildren(failure(error, null, again)));
    }
  }
}

function shown(node, time) {
  main.replaceChildren(node);
  return new Promise((resolve) => setTimeout(resolve, time));
}

function introduce({ name, version, entities, relations, rules, facts }) {
  const known = Object.values(facts).reduce((sum, number) => sum + number, 0);
  document.getElementById("model-name").textContent = name;
  document
    .getElementById("model-facts")
    .replaceChildren(
      el(
        "p",
        {},
        `${counted(rules, "rule")} from ${counted(known, "fact")} about `,
        `${count(entities)} entities and ${counted(relations, "relation")}.`,
      ),
      el("p", {}, `tilp ${version} · `, el("a", { href: "openapi.json" }, "The JSON API")),
    );
}

/** Shows a view in the state of the address; a new view gets the focus. */
function show(views, { view: name, params }) {
  const view = views.get(name);
  for (const link of links) {
    if (link.dataset.view === name) {
      link.setAttribute("aria-current", "page");
      link.href = location.hash; // keeps the state of the view for when people come back
    } else link.removeAttribute("aria-current");
  }
  const isNew = view.element.parentNode !== main;
  if (isNew) {
    const isFirst = !main.querySelector("h1");
    main.replaceChildren(view.element);
    document.title = `${view.title} · tilp`;
    window.scrollTo(0, 0);
    if (!isFirst) view.element.querySelector("h1").focus({ preventScroll: true });
  }
  view.update(params);
}

document.getElementById("skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address holds the state of the view
  main.focus();
});

main.replaceChildren(loading());
const prepared = await prepare();
const views = new Map(Object.entries(VIEWS).map(([name, make]) => [name, make(prepared)]));
introduce(prepared.model);
if (!views.has(here().view)) {
  history.replaceState(null, "", address("ask", prepared.model.example));
}
listen((place) => {
  if (views.has(place.view)) show(views, place);
  else
    main.replaceChildren(
      empty("There is no such view.", el("p", {}, el("a", { href: "#/ask" }, "Ask something"))),
    );
});
