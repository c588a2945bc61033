// What every agent gave and got: a bar each, the scores that were asked for, and who helped whom.

import { csvOf, download, fileName } from "./save.js";
import { read, write } from "./state.js";
import { NONE, el, short } from "./words.js";

// A matrix with more rows cannot be read; those that exchanged most are shown, and all are in the
// file.
const MOST = 24;

const SCORES = [
  { key: "own", head: "own", about: "by how much its own directions lowered its own loss" },
  {
    key: "unexplained",
    head: "unexplained",
    about: "the part of the fall of its loss that no direction explains",
  },
  {
    key: "loo",
    head: "leave-one-out",
    about: "what the validation loss would lack without it, summed over the rounds",
  },
  { key: "shapley", head: "Shapley", about: "its Shapley values, summed over the rounds" },
  { key: "gtg", head: "GTG-Shapley", about: "the same from a sample of orders" },
  { key: "core", head: "least core", about: "its part in the least core of the run" },
  { key: "cgsv", head: "cosine", about: "the mean cosine of its direction with everybody’s" },
  { key: "fedce", head: "FedCE", about: "one minus the mean cosine with what the others did" },
  {
    key: "reputation",
    head: "reputation",
    about: "how often its direction agreed with the step, from 0 to 1",
  },
];
const known = (value) => value !== undefined && value !== null;
const balance = ({ given, got }) => (known(given) && known(got) ? given - got : null);
const HELP = [
  {
    key: "given",
    head: "given",
    about: "by how much its directions lowered the others’ losses",
    value: (member) => member.given,
  },
  {
    key: "got",
    head: "got",
    about: "by how much the others’ directions lowered its loss",
    value: (member) => member.got,
  },
  { key: "balance", head: "given − got", about: "what it gave less what it got", value: balance },
];

// As many decimals as the largest of some numbers needs, so that they stand below each other.
function decimals(values, digits) {
  const most = Math.max(...values.map(Math.abs).filter(Number.isFinite), 0);
  return most > 0 ? Math.max(0, Math.min(6, digits - 1 - Math.floor(Math.log10(most)))) : 0;
}

function fixed(value, digits) {
  if (!known(value) || !Number.isFinite(value)) return NONE;
  const text = value.toFixed(digits);
  return Number(text) === 0 ? "0" : text.replace("-", "−");
}

export class Members {
  constructor(run) {
    this.run = run;
    this.about = el("p", { class: "about" });
    this.legend = el(
      "div",
      { class: "legend" },
      el(
        "span",
        { class: "key" },
        el("span", { class: "swatch gave", "aria-hidden": "true" }),
        "given",
      ),
      el(
        "span",
        { class: "key" },
        el("span", { class: "swatch got", "aria-hidden": "true" }),
        "got",
      ),
    );
    this.head = el("tr");
    this.body = el("tbody");
    const table = el(
      "table",
      { class: "balance" },
      el("caption", { class: "hidden" }, "What every agent gave and got"),
      el("thead", {}, this.head),
      this.body,
    );
    this.matrixNote = el("p", { class: "about" });
    this.matrixHead = el("tr");
    this.matrixBody = el("tbody");
    const matrix = el(
      "table",
      { class: "matrix" },
      el(
        "caption",
        { class: "hidden" },
        "By how much each agent (a row) was helped by each (a column)",
      ),
      el("thead", {}, this.matrixHead),
      this.matrixBody,
    );
    this.core = el("p", { class: "about" });
    this.scale = el(
      "div",
      { class: "legend" },
      el(
        "span",
        { class: "key" },
        el("span", { class: "swatch gave", "aria-hidden": "true" }),
        "lowers its loss",
      ),
      el(
        "span",
        { class: "key" },
        el("span", { class: "swatch got", "aria-hidden": "true" }),
        "raises it (−)",
      ),
    );
    this.whole = el(
      "div",
      { class: "whole" },
      el("h3", {}, "Who helped whom"),
      this.matrixNote,
      this.scale,
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Matrix: who helped whom" },
        matrix,
      ),
    );
    const save = el(
      "div",
      {
        class: "choice save",
        role: "group",
        "aria-label": "Save what every agent gave and got as",
      },
      el("button", { type: "button", onclick: () => this.save() }, "CSV"),
    );
    this.section = el(
      "section",
      { class: "card members", "aria-label": "What every agent gave and got", hidden: true },
      el("div", { class: "head" }, el("h2", {}, "What every agent gave and got"), save),
      this.about,
      this.legend,
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table: given and got" },
        table,
      ),
      this.core,
      this.whole,
    );
  }

  get columns() {
    const { each } = this.run.detail.worth;
    const there = ({ key, value = (member) => member[key] }) =>
      each.some((member) => known(value(member)));
    return [...HELP, ...SCORES]
      .filter(there)
      .map((column) => ({ value: (member) => member[column.key], ...column }));
  }

  get order() {
    const by = read("members") || "";
    return { key: by.replace(/^-/, ""), down: by.startsWith("-") };
  }

  sortBy(key) {
    const { key: now, down } = this.order;
    write("members", now === key && down ? key : `-${key}`);
    this.update();
  }

  sorted() {
    const { key, down } = this.order;
    const column = this.columns.find((one) => one.key === key);
    const { each } = this.run.detail.worth;
    if (!column) return key === "agent" && down ? [...each].reverse() : each;
    const value = (member) => (known(column.value(member)) ? column.value(member) : -Infinity);
    return [...each].sort((a, b) => (value(a) - value(b)) * (down ? -1 : 1) || a.id - b.id);
  }

  update() {
    const { worth } = this.run.detail;
    this.section.hidden = !worth;
    if (!worth) return;
    const wanted = JSON.stringify([worth, read("members")]);
    if (this.wanted === wanted) return;
    this.wanted = wanted;
    const so = worth.live
      ? " So far, in rounds in which the agent reported; who helped whom is told once the " +
        "run is over."
      : "";
    this.about.textContent =
      "In units of the loss, over all rounds: what its directions did to the others’ " +
      "losses, and theirs to its own. To the right of the line a loss was lowered, to the " +
      `left raised.${so}`;
    this.core.textContent = worth.core || "";
    this.core.hidden = !worth.core;
    this.drawTable();
    this.drawMatrix();
  }

  drawTable() {
    const { columns, order } = this;
    const focus = this.head.contains(document.activeElement)
      ? document.activeElement.dataset.focus
      : null;
    const heads = [{ key: "agent", head: "agent", about: "", text: true }, ...columns];
    const cells = heads.map((column) => {
      const sort = order.key !== column.key ? "none" : order.down ? "descending" : "ascending";
      return el(
        "th",
        { scope: "col", class: column.text ? "text" : "", "aria-sort": sort },
        el(
          "button",
          {
            type: "button",
            title: column.about || null,
            "data-focus": column.key,
            onclick: () => this.sortBy(column.key),
          },
          column.head,
        ),
      );
    });
    const bars = columns.some(({ key }) => key === "given");
    this.legend.hidden = !bars;
    if (bars) cells.splice(1, 0, el("th", { scope: "col", class: "text" }, "balance"));
    this.head.replaceChildren(...cells);
    const [span, { each }] = [this.span(), this.run.detail.worth];
    const digits = columns.map((column) => decimals(each.map(column.value).filter(known), 4));
    this.body.replaceChildren(
      ...this.sorted().map((member) => {
        const row = columns.map((column, i) =>
          el("td", {}, fixed(column.value(member), digits[i])),
        );
        if (bars) row.unshift(el("td", { class: "text" }, this.bar(member, span)));
        return el("tr", {}, el("th", { scope: "row", class: "text" }, member.called), ...row);
      }),
    );
    if (focus)
      [...this.head.querySelectorAll("button")].find((one) => one.dataset.focus === focus)?.focus();
  }

  // The least and the most that anybody gave or got, zero among them.
  span() {
    const all = this.run.detail.worth.each
      .flatMap(({ given, got }) => [given, got])
      .filter(Number.isFinite);
    return [Math.min(0, ...all), Math.max(0, ...all)];
  }

  // Given above, got below, from a common line; the numbers stand beside it.
  bar({ given, got }, [low, high]) {
    const share = (value) => (100 * (value - low)) / (high - low || 1);
    const one = (value, kind) => {
      const part = el("span", { class: kind });
      part.style.left = `${share(Math.min(0, value || 0))}%`;
      part.style.width = `${Math.abs(share(value || 0) - share(0))}%`;
      return part;
    };
    const zero = el("span", { class: "zero" });
    zero.style.left = `${share(0)}%`;
    return el(
      "span",
      { class: "bar-of-two", "aria-hidden": "true" },
      zero,
      one(given, "gave"),
      one(got, "got"),
    );
  }

  // Those that exchanged most, in their order.
  chosen() {
    const { agents, help } = this.run.detail.worth;
    const places = agents.map((_, place) => place);
    if (places.length <= MOST) return places;
    const exchanged = (place) =>
      places.reduce(
        (sum, other) =>
          sum + (other === place ? 0 : Math.abs(help[place][other]) + Math.abs(help[other][place])),
        0,
      );
    return places
      .map((place) => [exchanged(place), place])
      .sort((a, b) => b[0] - a[0])
      .slice(0, MOST)
      .map(([, place]) => place)
      .sort((a, b) => a - b);
  }

  drawMatrix() {
    const { agents, help } = this.run.detail.worth;
    this.whole.hidden = !help.length;
    if (!help.length) return;
    const places = this.chosen();
    const fewer =
      places.length < this.run.detail.agents_all
        ? ` The ${places.length} agents that exchanged most, of ${this.run.detail.agents_all}.`
        : "";
    this.matrixNote.textContent =
      "By how much the directions of the agent at the head of a column lowered the loss of " +
      `the agent at the head of a row. On the diagonal: what it did for itself.${fewer}`;
    const names = places.map((place) => agents[place].called);
    // A number stands for itself in a narrow column; a name is cut, and whole where one points at
    // it.
    const brief = places.map((place) => agents[place].brief.slice(0, 8));
    const plain = places.map((place) => agents[place].brief !== agents[place].called);
    const others = places.flatMap((row) =>
      places.filter((by) => by !== row).map((by) => help[row][by]),
    );
    const most = Math.max(...others.map(Math.abs), 1e-300);
    const digits = decimals(others, 3);
    const head = (name, i) =>
      el(
        "th",
        { scope: "col", title: names[i] },
        plain[i] ? el("span", { class: "hidden" }, "agent ") : null,
        name,
      );
    this.matrixHead.replaceChildren(
      el("th", { scope: "col", class: "text" }, "helped \\ by"),
      ...brief.map(head),
    );
    this.matrixBody.replaceChildren(
      ...places.map((row, i) =>
        el(
          "tr",
          {},
          el("th", { scope: "row", class: "text" }, names[i]),
          ...places.map((by, j) => {
            const value = help[row][by];
            const kind = row === by ? "self" : value > 0 ? "plus" : value < 0 ? "minus" : "";
            const cell = el(
              "td",
              {
                class: kind,
                title:
                  `${names[j]} ${value < 0 ? "raised" : "lowered"} the loss of ${names[i]} ` +
                  `by ${short(Math.abs(value))}`,
              },
              fixed(value, digits),
            );
            if (row !== by)
              cell.style.setProperty(
                "--share",
                `${Math.round(45 * Math.sqrt(Math.abs(value) / most))}%`,
              );
            return cell;
          }),
        ),
      ),
    );
  }

  save() {
    const { worth, listing } = this.run.detail;
    const { columns } = this;
    const rows = [
      [
        "agent",
        ...columns.map(({ head }) => head),
        ...worth.agents.map(({ called }) => `helped by ${called}`),
      ],
    ];
    for (const member of worth.each) {
      const place = worth.agents.findIndex(({ id }) => id === member.id);
      rows.push([
        member.called,
        ...columns.map((column) => column.value(member) ?? NaN),
        ...(place < 0 ? [] : worth.help[place]),
      ]);
    }
    download(
      fileName(`${listing.name}: given and got`, "csv"),
      new Blob([csvOf(rows)], { type: "text/csv" }),
    );
  }
}
