// Runs as a table: sorted by any column, with the columns one wants, of results and of settings.

import { differences } from "./diff.js";
import { part, shownAs, together } from "./measures.js";
import { lineSwatch } from "./sign.js";
import { linkTo, read, write } from "./state.js";
import { NONE, el, number, short } from "./words.js";

const whole = (value) => (Number.isFinite(value) ? String(Math.round(value * 100) / 100) : NONE);

// Results, under the names they have in the list and in `delivered`.
const RESULTS = [
  { key: "left", head: "left", show: whole, of: "agents" },
  { key: "verdict", head: "verdict", text: true },
  { key: "content", head: "content", show: whole, of: "agents" },
  { key: "rounds", head: "rounds", show: whole },
  { key: "loss_mean", head: "mean loss", show: number },
  { key: "loss_worst", head: "worst loss", show: number },
];

// The results of a row that has these measures.
export function keysOf(measures) {
  const parts = (measure) => ["mean", "worst", "population"].map((one) => part(measure, one));
  return ["loss_mean", "loss_worst", ...measures.flatMap(parts)];
}

const measuresOf = (row) => row.measures || [];

function setting(value) {
  return value === undefined || value === null
    ? NONE
    : typeof value === "number"
      ? short(value)
      : String(value);
}

export function spread(values) {
  const known = values.filter(Number.isFinite);
  if (!known.length) return null;
  const mean = known.reduce((sum, value) => sum + value, 0) / known.length;
  const deviation =
    known.length > 1
      ? Math.sqrt(known.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (known.length - 1))
      : null;
  return {
    mean,
    deviation,
    count: known.length,
    low: Math.min(...known),
    high: Math.max(...known),
  };
}

// A row is { key, name, href, look, values, settings } or, of a group, { …, members } with rows.
export class RunTable {
  constructor({ title, note, lead = [] }) {
    this.lead = lead;
    [this.rows, this.available] = [[], RESULTS];
    this.body = el("tbody");
    this.head = el("tr");
    this.note = el("p", { class: "about" }, note);
    this.menu = el("div", { class: "columns" });
    const chooser = el("details", { class: "chooser" }, el("summary", {}, "Columns"), this.menu);
    const table = el(
      "table",
      {},
      el("caption", { class: "hidden" }, title),
      el("thead", {}, this.head),
      this.body,
    );
    this.section = el(
      "section",
      { class: "card results", "aria-label": title },
      el("div", { class: "head" }, el("h2", {}, title), chooser),
      this.note,
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": `Table: ${title}` },
        table,
      ),
    );
  }

  // Results that all rows have, and those of what some of them measure.
  get results() {
    const measures = together(this.rows.flatMap((row) => row.members || [row]).map(measuresOf));
    const of = (measure, place) => {
      const show = shownAs(measure);
      const more = place === 0 ? "" : ` ${measure.label}`;
      return [
        { key: part(measure, "mean"), head: `mean ${measure.label}`, show },
        { key: part(measure, "worst"), head: `worst ${measure.label}`, show },
        { key: part(measure, "population"), head: `population${more}`, show },
      ];
    };
    return [...RESULTS, ...measures.flatMap(of)];
  }

  // All columns there are: results, and the settings in which the rows differ.
  findColumns() {
    const { differ } = differences(this.rows.map((row) => row.settings || {}));
    const settings = differ.map((key) => ({ key, head: key, setting: true, text: true }));
    return [...this.results, ...settings];
  }

  get columns() {
    const wanted = read("columns");
    const chosen = wanted === null ? null : new Set(wanted.split(","));
    return this.available.filter((column) => (chosen ? chosen.has(column.key) : !column.setting));
  }

  toggle(key) {
    const shown = new Set(this.columns.map((column) => column.key));
    shown[shown.has(key) ? "delete" : "add"](key);
    const plain = this.results.map((column) => column.key).join(",");
    const text = this.available
      .map((column) => column.key)
      .filter((one) => shown.has(one))
      .join(",");
    write("columns", text === plain ? null : text || "none");
    this.draw();
  }

  // What a row has in a column: a number or a text, or nothing.
  value(row, column) {
    if (column.key === "name") return row.name;
    if (row.members) {
      if (column.setting || column.key === "verdict") return this.text(row, column);
      const found = spread(row.members.map((member) => member.values[column.key]));
      return found ? found.mean : null;
    }
    if (column.setting) return row.settings[column.key];
    return column.key === "verdict" ? row.verdict.head : row.values[column.key];
  }

  text(row, column) {
    if (row.members && (column.setting || column.key === "verdict")) {
      const counts = new Map();
      for (const member of row.members) {
        const one = column.setting ? setting(member.settings[column.key]) : member.verdict.head;
        counts.set(one, (counts.get(one) || 0) + 1);
      }
      const some = [...counts]
        .slice(0, 4)
        .map(([one, count]) => (counts.size === 1 ? one : `${one} (${count})`));
      return some.join(", ") + (counts.size > 4 ? ", …" : "");
    }
    if (row.members) {
      const found = spread(row.members.map((member) => member.values[column.key]));
      if (!found) return NONE;
      return found.deviation === null
        ? column.show(found.mean)
        : `${column.show(found.mean)} ± ${column.show(found.deviation)}`;
    }
    if (column.setting) return setting(row.settings[column.key]);
    const value = row.values[column.key];
    return Number.isFinite(value) && column.of
      ? `${column.show(value)} of ${row.values[column.of]}`
      : column.show(value);
  }

  get order() {
    const by = read("by") || "";
    const down = by.startsWith("-");
    const key = down ? by.slice(1) : by;
    return { key: key || "", down };
  }

  sortBy(key) {
    const { key: now, down } = this.order;
    write("by", now === key && !down ? `-${key}` : key);
    this.draw();
  }

  set(rows) {
    this.rows = rows;
    this.available = this.findColumns();
    this.draw();
  }

  sorted() {
    const { key, down } = this.order;
    const column = key === "name" ? { key } : this.available.find((one) => one.key === key);
    if (!column) return this.rows;
    const known = (row) => {
      const value = this.value(row, column);
      return value === null || value === undefined || value !== value ? null : value;
    };
    return [...this.rows].sort((a, b) => {
      const [x, y] = [known(a), known(b)];
      if (x === null || y === null) return (x === null) - (y === null);
      const order =
        typeof x === "number" && typeof y === "number"
          ? x - y
          : String(x).localeCompare(String(y), "en", { numeric: true });
      return down ? -order : order;
    });
  }

  draw() {
    const { columns, order } = this;
    const heads = [{ key: "name", head: "run", text: true }, ...columns];
    const focus = this.section.contains(document.activeElement)
      ? document.activeElement.dataset.focus
      : null;
    this.head.replaceChildren(
      ...this.lead.map(({ head }) => el("th", { scope: "col", class: "text" }, head)),
      ...heads.map((column) => {
        const sort = order.key !== column.key ? "none" : order.down ? "descending" : "ascending";
        return el(
          "th",
          { scope: "col", class: column.text ? "text" : "", "aria-sort": sort },
          el(
            "button",
            {
              type: "button",
              "data-focus": `sort ${column.key}`,
              onclick: () => this.sortBy(column.key),
            },
            column.head,
          ),
        );
      }),
    );
    this.body.replaceChildren(...this.sorted().map((row) => this.row(row, columns)));
    const shown = new Set(columns.map((column) => column.key));
    this.menu.replaceChildren(
      ...this.available.map((column) => {
        const box = el("input", {
          type: "checkbox",
          "data-focus": `column ${column.key}`,
          onchange: () => this.toggle(column.key),
        });
        box.checked = shown.has(column.key);
        return el("label", {}, box, column.head);
      }),
    );
    if (focus)
      [...this.section.querySelectorAll("[data-focus]")]
        .find((one) => one.dataset.focus === focus)
        ?.focus();
  }

  row(row, columns) {
    const name = row.members ? `${row.name} (${row.members.length})` : row.name;
    const first = el(
      "th",
      { scope: "row", class: "text" },
      lineSwatch(row.look),
      row.href ? el("a", { href: row.href, "data-focus": `row ${row.key}` }, name) : name,
    );
    const cells = columns.map((column) => {
      if (column.key === "verdict" && !row.members)
        return el(
          "td",
          { class: "text" },
          el("span", { class: "how", "data-tone": row.verdict.tone }, row.verdict.head),
        );
      return el("td", { class: column.text ? "text" : "" }, this.text(row, column));
    });
    return el(
      "tr",
      { class: row.hidden ? "off" : "" },
      ...this.lead.map(({ cell }) => el("td", { class: "text" }, cell(row))),
      first,
      ...cells,
    );
  }
}

// A row from a line of the list.
export function rowOf(listing, common, look) {
  const { delivered } = listing;
  const of = (key) => (delivered && Number.isFinite(delivered[key]) ? delivered[key] : NaN);
  return {
    key: listing.id,
    name: listing.name,
    href: linkTo("run", listing.id),
    look,
    verdict: {
      head: listing.brief.text.split(",")[0].replace(/^./, (sign) => sign.toUpperCase()),
      tone: listing.brief.tone,
    },
    values: {
      agents: listing.agents,
      left: of("left"),
      content: of("content"),
      rounds: listing.rounds,
      ...Object.fromEntries(keysOf(listing.measures).map((key) => [key, of(key)])),
    },
    measures: listing.measures,
    settings: { rule: listing.rule, ...common, ...listing.settings },
  };
}
