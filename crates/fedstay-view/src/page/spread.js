// How the delivered model's worth is spread over the agents, and what departures cost those who
// stay: figures of the summary, with the whole number behind what is shown.

import { LOSS, shownAs } from "./measures.js";
import { el, several } from "./words.js";

const shown = (value, digits) => value.toFixed(digits).replace("-", "−");
const signed = (value, text) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${text}`;

// A line is { name, about, value, text }; what a summary does not have is left out.
function lines({ fairness, of: measure, measures, population, alone, extra }) {
  const found = [];
  const add = (name, about, value, text) => {
    if (Number.isFinite(value)) found.push({ name, about, value, text: text(value) });
  };
  if (fairness) {
    const [worth, of] = [shownAs(measure), measure.label];
    add(
      `median agent’s ${of}`,
      "of the agent in the middle; of two in the middle, between them",
      fairness.median,
      worth,
    );
    add(
      `worst tenth’s ${of}`,
      "the mean over the worst tenth of the agents, at least one",
      fairness.worst_decile,
      worth,
    );
    add(
      "Jain’s index",
      `of the agents’ ${of}: 1 if all have the same, 1/M if one of M has everything`,
      fairness.jain,
      (value) => shown(value, 3),
    );
    add(
      "Gini coefficient",
      `of the agents’ ${of}: 0 if all have the same`,
      fairness.gini,
      (value) => shown(value, 3),
    );
    add(
      "correlation with what each makes alone",
      "Pearson’s, over the agents",
      fairness.with_alone,
      (value) => shown(value, 2),
    );
  }
  if (alone)
    add(
      "better off than alone",
      "agents that end with a better model than they would have made alone",
      alone.better,
      (value) => `${value} of ${alone.of}`,
    );
  if (population) {
    for (const one of [...measures, LOSS])
      add(
        `population ${one.label}`,
        "on data that no participant trained on",
        population[one.name],
        shownAs(one),
      );
  }
  if (extra) {
    const about =
      `of the ${several(extra.stayers, "agent")} that never left, together, ` +
      "against the same run with nobody leaving";
    add("extra rounds of those who stay", about, extra.rounds, (value) =>
      signed(value, String(Math.abs(value))),
    );
    add("extra bytes of those who stay", about, extra.bytes, (value) =>
      signed(value, `${(Math.abs(value) / 1e6).toFixed(1)} MB`),
    );
  }
  return found;
}

export class Spread {
  constructor(run) {
    this.run = run;
    this.facts = el("dl", { class: "facts" });
    this.section = el(
      "section",
      { class: "card spread", "aria-label": "How the result is spread", hidden: true },
      el("div", { class: "head" }, el("h2", {}, "How the result is spread")),
      el(
        "p",
        { class: "about" },
        "Of the delivered model, over all agents that were measured, leavers included; a " +
          "name says more where one points at it.",
      ),
      this.facts,
    );
  }

  update() {
    const found = this.run.detail.spread ? lines(this.run.detail.spread) : [];
    this.section.hidden = !found.length;
    const wanted = JSON.stringify(found);
    if (this.wanted === wanted) return;
    this.wanted = wanted;
    this.facts.replaceChildren(
      ...found.map(({ name, about, value, text }) =>
        el(
          "div",
          { title: about },
          el("dt", {}, name),
          el("dd", {}, el("data", { value: String(value) }, text)),
        ),
      ),
    );
  }
}
