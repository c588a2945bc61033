// The settings in which runs differ, and how many they share.

import { lineSwatch } from "./sign.js";
import { NONE, el } from "./words.js";

// With more runs, values are counted and not set beside each other.
const BESIDE = 8;

function text(value) {
  return value === undefined ? NONE : String(value);
}

// The keys in which some runs have another value, and those that are the same in all.
export function differences(settings) {
  const keys = [...new Set(settings.flatMap((one) => Object.keys(one)))].sort();
  // Values are numbers, texts and truths, and lists as texts.
  const differs = (key) => settings.some((one) => one[key] !== settings[0][key]);
  const differ = new Set(keys.filter(differs));
  return { differ: [...differ], same: keys.filter((key) => !differ.has(key)) };
}

function counted(settings, key) {
  const counts = new Map();
  for (const one of settings) counts.set(text(one[key]), (counts.get(text(one[key])) || 0) + 1);
  const order = [...counts].sort(([a], [b]) => a.localeCompare(b, "en", { numeric: true }));
  const some = order.slice(0, 12).map(([value, count]) => `${value} (${count})`);
  return some.join(", ") + (order.length > 12 ? `, … ${order.length} values` : "");
}

export class Diff {
  constructor() {
    this.note = el("p", { class: "about" });
    this.head = el("tr");
    this.body = el("tbody");
    this.same = el("pre", { tabindex: "0" });
    const table = el(
      "table",
      {},
      el("caption", { class: "hidden" }, "Settings in which the runs differ"),
      el("thead", {}, this.head),
      this.body,
    );
    this.section = el(
      "section",
      { class: "card diff", "aria-label": "Configuration, what differs" },
      el("div", { class: "head" }, el("h2", {}, "Configuration: what differs")),
      this.note,
      el(
        "div",
        {
          class: "scroll",
          tabindex: "0",
          role: "region",
          "aria-label": "Table of settings that differ",
        },
        table,
      ),
      el("details", {}, el("summary", {}, "What they share"), this.same),
    );
  }

  // Runs are { name, look, settings }.
  set(runs) {
    const known = runs.filter((run) => run.settings);
    const wanted = JSON.stringify(
      known.map(({ name, look, settings }) => [name, look.light, settings]),
    );
    if (this.body.dataset.wanted === wanted) return;
    this.body.dataset.wanted = wanted;
    const settings = known.map((run) => run.settings);
    const { differ, same } = differences(settings);
    const without = runs.length - known.length;
    const found = differ.length
      ? `${differ.length} of ${differ.length + same.length} keys differ.`
      : "All keys have the same values.";
    const lack = without ? ` ${without} of the runs have no config.toml.` : "";
    this.note.textContent = found + lack;
    const beside = known.length <= BESIDE;
    const heads = beside
      ? known.map((run) =>
          el("th", { scope: "col", class: "text" }, lineSwatch(run.look), run.name),
        )
      : [el("th", { scope: "col", class: "text" }, "values, and how many runs have them")];
    this.head.replaceChildren(el("th", { scope: "col", class: "text" }, "key"), ...heads);
    const cells = (key) =>
      beside ? settings.map((one) => text(one[key])) : [counted(settings, key)];
    this.body.replaceChildren(
      ...differ.map((key) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", class: "text" }, key),
          ...cells(key).map((cell) => el("td", { class: "text wrap" }, cell)),
        ),
      ),
    );
    this.same.textContent = same.map((key) => `${key} = ${text(settings[0][key])}`).join("\n");
  }
}
