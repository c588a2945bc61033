// What runs measure besides the loss. The server says of each measure what it is called, which
// values are better and what its unit is; nothing here knows one of them by name.

import { extent } from "./axes.js";
import { choice } from "./card.js";
import { trackOf } from "./data.js";
import { read, write } from "./state.js";
import { el, number, percent } from "./words.js";

export const LOSS = { name: "loss", label: "loss", better: "lower", unit: "number" };

export const isShare = (measure) => measure.unit === "share";

// How a value of a measure is shown.
export const shownAs = (measure) => (isShare(measure) ? percent : number);

// The name of a track, and of what is delivered: `accuracy_mean`.
export const part = (measure, of) => `${measure.name}_${of}`;

// The measures of several runs, each once.
export function together(lists) {
  const names = new Map();
  for (const measure of lists.flat())
    if (!names.has(measure.name)) names.set(measure.name, measure);
  return [...names.values()];
}

// Whether a run has a measure, in some round or of what it delivered.
export function has({ series, detail }, measure) {
  const name = part(measure, "mean");
  const { delivered } = detail;
  return (
    extent([trackOf(series, name)]) !== null || (delivered && Number.isFinite(delivered[name]))
  );
}

// Buttons for what is measured: the measures offered, then the loss. The first is chosen unless the
// address says otherwise.
export class Chooser {
  constructor(changed) {
    this.changed = changed;
    this.element = el("div", { class: "what" });
  }

  // Offers these, and returns the one that is chosen.
  offer(measures) {
    const all = [...measures, LOSS];
    const chosen = all.find(({ name }) => name === read("what")) || all[0];
    const wanted = JSON.stringify([all.map(({ name }) => name), chosen.name]);
    this.element.hidden = !measures.length;
    if (this.wanted === wanted) return chosen;
    this.wanted = wanted;
    const options = all.map(({ name, label }) => [name, label]);
    const buttons = choice("What is measured", options, chosen.name, (name) => {
      write("what", name === all[0].name ? null : name);
      this.changed();
    });
    this.element.replaceChildren(buttons);
    return chosen;
  }
}
