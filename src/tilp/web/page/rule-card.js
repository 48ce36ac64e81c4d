/** One rule: its sentence, its picture, its formula and its statistics. */

import * as api from "./api.js";
import { bar } from "./bars.js";
import { el } from "./dom.js";
import { pictureWhenSeen } from "./picture.js";
import { formula } from "./reasons.js";
import { count, counted, percent, score } from "./words.js";

const SHARE = { low: 0, span: 1 };

/** A rule of the service as an item of a list; its picture is loaded when it is near. */
export function ruleCard(rule) {
  const drawing = pictureWhenSeen(() => api.rulePicture(rule.number));
  return el(
    "li",
    { class: "card rule" },
    el("p", { class: "sentence" }, rule.sentence),
    el("div", { class: "rule-parts" }, drawing, numbers(rule)),
    formula(rule.text),
    rule.sampled && el("p", { class: "hint" }, "Estimated on a sample of the facts."),
  );
}

function numbers({ gain, weight, support, facts, body_support, confidence, lift, length }) {
  return el(
    "dl",
    { class: "figures" },
    gain !== null && figure("Gain", score(gain)),
    figure(
      "Support",
      `${count(support)} of ${counted(facts, "fact")}`,
      bar(support / facts, SHARE),
    ),
    figure("Body holds for", counted(body_support, "fact")),
    figure("Confidence", percent(confidence), bar(confidence, SHARE)),
    lift !== null && figure("Lift", score(lift)),
    weight !== null && figure("Weight", score(weight)),
    figure("Length", count(length)),
  );
}

function figure(name, value, drawing) {
  return el("div", {}, el("dt", {}, name), el("dd", {}, value, drawing));
}
