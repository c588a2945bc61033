// All runs that the search finds, as a table.

import { lookOf } from "./looks.js";
import { RunTable, rowOf } from "./results.js";
import { el, several } from "./words.js";

export class AllView {
  constructor(list) {
    this.list = list;
    this.heading = el("h1", { tabindex: "-1" }, "All runs");
    const choose = (row) => {
      const box = el("input", {
        type: "checkbox",
        "aria-label": `Choose ${row.name} for a comparison`,
        "data-focus": `choose ${row.key}`,
      });
      box.checked = list.chosen.has(row.key);
      box.addEventListener("change", () => {
        list.chosen[box.checked ? "add" : "delete"](row.key);
        list.draw();
      });
      return box;
    };
    this.table = new RunTable({
      title: "Runs",
      note: "Sort by a column’s head; settings in which the runs differ are among the columns.",
      lead: [{ head: "chosen", cell: choose }],
    });
    this.words = el("p", { class: "words" }, "");
    this.element = el(
      "article",
      {},
      el("div", { class: "title" }, this.heading),
      this.words,
      this.table.section,
    );
  }

  remove() {}

  update() {
    document.title = "All runs · fedstay";
    const { found, common, listings } = this.list;
    this.words.textContent =
      found.length === listings.length
        ? several(found.length, "run")
        : `${found.length} of ${several(listings.length, "run")}, by the search`;
    this.table.set(
      found.slice(0, 1000).map((listing) => rowOf(listing, common, lookOf(listing.id))),
    );
  }
}
