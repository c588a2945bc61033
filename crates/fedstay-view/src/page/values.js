// All values at the cursor, the largest first: beside the cursor while it moves, below the chart
// once a round is pinned.

import { lineSign, swatch } from "./sign.js";
import { el } from "./words.js";

const ROW = 18;

function signOf(look) {
  const sign = look ? lineSign(look) : swatch("dash");
  if (look) sign.style.borderTopStyle = look.dash.length ? "dashed" : "solid";
  return sign;
}

function item({ name, shown, look }) {
  return el(
    "li",
    {},
    signOf(look),
    el("span", { class: "who" }, name),
    el("span", { class: "value" }, shown),
  );
}

// A row that says another value with every movement of the pointer.
class Row {
  constructor() {
    [this.who, this.value] = [document.createTextNode(""), document.createTextNode("")];
    this.sign = signOf(null);
    this.mark = "";
    this.element = el(
      "li",
      {},
      this.sign,
      el("span", { class: "who" }, this.who),
      el("span", { class: "value" }, this.value),
    );
  }

  set({ name, shown, look }) {
    const mark = look ? `${look.light} ${look.dash.length > 0}` : "";
    if (mark !== this.mark) {
      const sign = signOf(look);
      this.sign.replaceWith(sign);
      [this.sign, this.mark] = [sign, mark];
    }
    if (this.who.data !== name) this.who.data = name;
    if (this.value.data !== shown) this.value.data = shown;
  }
}

export class ValueList {
  // `values` turns an index of the series into { name, value, shown, look, near }.
  constructor(plot, values) {
    [this.plot, this.values] = [plot, values];
    this.floating = el("ol", { class: "values", "aria-hidden": "true", hidden: true });
    this.rows = [];
    this.more = el("li", { class: "faint" });
    this.listed = "";
    this.title = el("h3", {});
    this.kept = el("ol", { class: "values", tabindex: "0" });
    const free = el(
      "button",
      { type: "button", onclick: () => plot.cursor.pin(plot.cursor.pinned) },
      "let go",
    );
    this.pinned = el(
      "div",
      { class: "pinned", role: "group", hidden: true, "aria-label": "Values at the pinned round" },
      el("div", { class: "head" }, this.title, free),
      this.kept,
    );
    plot.box.append(this.floating);
  }

  sorted(index) {
    const known = this.values(index).filter(({ value }) => Number.isFinite(value));
    return known.sort((a, b) => b.value - a.value || (a.name < b.name ? -1 : 1));
  }

  update() {
    this.float();
    this.keep();
  }

  float() {
    const { plot } = this;
    const here = plot.pointer !== null && plot.pointer !== undefined;
    const index = here && !plot.drag && plot.cursor.round !== null ? plot.index() : -1;
    const all = index >= 0 ? this.sorted(index) : [];
    if (this.floating.hidden !== (all.length === 0)) this.floating.hidden = all.length === 0;
    if (!all.length) return;
    // As many as fit, around the one nearest to the pointer.
    const room = Math.max(3, Math.floor((plot.height - 20) / ROW) - 1);
    const near = Math.max(
      0,
      all.findIndex((one) => one.near),
    );
    const from = Math.max(0, Math.min(near - Math.floor(room / 2), all.length - room));
    const some = all.slice(from, from + room);
    while (this.rows.length < some.length) this.rows.push(new Row());
    some.forEach((one, place) => this.rows[place].set(one));
    const rest = all.length - some.length;
    const listed = `${some.length} ${rest}`;
    if (this.listed !== listed) {
      this.listed = listed;
      this.more.textContent = `${rest} more: click to see all`;
      this.floating.replaceChildren(
        ...this.rows.slice(0, some.length).map((row) => row.element),
        ...(rest ? [this.more] : []),
      );
    }
    const x = plot.x(plot.middle(index));
    // On the side on which there is more room; moved without laying the page out.
    this.floating.style.transform =
      x > plot.width / 2 ? `translateX(calc(${x - 14}px - 100%))` : `translateX(${x + 14}px)`;
  }

  keep() {
    const { plot } = this;
    const { pinned } = plot.cursor;
    const index = pinned === null || !plot.first.length ? -1 : plot.placeOf(pinned);
    const all = index >= 0 ? this.sorted(index) : [];
    this.pinned.hidden = all.length === 0;
    if (!all.length) return;
    const wanted = JSON.stringify([
      plot.rounds(index),
      all.map(({ name, shown, look }) => [name, shown, look && look.light]),
    ]);
    if (this.kept.dataset.wanted === wanted) return;
    this.kept.dataset.wanted = wanted;
    const words = plot.rounds(index);
    this.title.textContent = `${words[0].toUpperCase()}${words.slice(1)}, pinned`;
    this.kept.setAttribute("aria-label", this.title.textContent);
    this.kept.replaceChildren(...all.map(item));
  }
}
