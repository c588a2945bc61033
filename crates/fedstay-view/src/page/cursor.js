// What all charts of a view share: the round under the cursor, the pinned one, and the rounds
// shown.

import { read, write } from "./state.js";
import { el } from "./words.js";

export class Cursor {
  constructor() {
    this.round = null;
    this.end = 2;
    this.listeners = new Set();
    this.zoomed = () => {};
    const at = Number(read("at"));
    this.pinned = at >= 1 ? at : null;
    const [from, to] = (read("rounds") || "").split("-").map(Number);
    this.range = from >= 1 && to > from ? [from, to] : null;
  }

  // The round that is looked at: the one under the cursor, else the pinned one.
  get shown() {
    return this.round !== null ? this.round : this.pinned;
  }

  tell() {
    for (const listener of this.listeners) listener();
  }

  move(round) {
    if (round === this.round) return;
    this.round = round;
    this.tell();
  }

  pin(round) {
    this.pinned = this.pinned === round ? null : round;
    write("at", this.pinned);
    this.tell();
  }

  // The rounds that are drawn.
  get domain() {
    if (!this.range) return [1, this.end];
    const from = Math.min(this.range[0], this.end - 1);
    return [from, Math.max(Math.min(this.range[1], this.end), from + 1)];
  }

  zoom(range) {
    let next = range;
    if (range) {
      const width = Math.min(Math.max(range[1] - range[0], 2), this.end - 1);
      const from = Math.max(1, Math.min(range[0], this.end - width));
      next = width >= this.end - 1.5 ? null : [Math.round(from), Math.round(from + width)];
    }
    if (String(next) === String(this.range)) return;
    this.range = next;
    write("rounds", next && next.join("-"));
    this.tellZoom();
    // Dragging zooms many times before the next frame.
    cancelAnimationFrame(this.waiting);
    this.waiting = requestAnimationFrame(() => this.zoomed());
  }

  tellZoom() {
    if (this.bar) this.bar();
  }

  // Nearer or farther, around a round that stays where it is.
  zoomBy(factor, around) {
    const [from, to] = this.domain;
    const middle = Math.max(
      from,
      Math.min(to, around === null || around === undefined ? (from + to) / 2 : around),
    );
    this.zoom([middle - (middle - from) * factor, middle + (to - middle) * factor]);
  }

  // Sideways, by a share of what is shown.
  panBy(share) {
    if (!this.range) return;
    const [from, to] = this.domain;
    const by = Math.sign(share) * Math.max(1, Math.abs(share) * (to - from));
    const kept = Math.max(1 - from, Math.min(this.end - to, by));
    this.zoom([from + kept, to + kept]);
  }
}

// The controls for the rounds that are shown, for those who do not drag.
export function zoomBar(cursor) {
  const said = el("span", { class: "faint" });
  const button = (text, label, act) =>
    el("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
  const back = button("◀", "Earlier rounds", () => cursor.panBy(-0.5));
  const on = button("▶", "Later rounds", () => cursor.panBy(0.5));
  const near = button("+", "Zoom in", () => cursor.zoomBy(0.5, cursor.shown));
  const far = button("−", "Zoom out", () => cursor.zoomBy(2, cursor.shown));
  const whole = button("all rounds", "Show all rounds", () => cursor.zoom(null));
  const bar = el(
    "div",
    { class: "zoom", role: "group", "aria-label": "Rounds shown" },
    said,
    el("span", { class: "choice" }, back, near, far, on, whole),
    el(
      "span",
      { class: "faint hint" },
      "drag to zoom, Shift and drag to move, click to pin a round; keys: + − 0, Shift " +
        "and arrows, Space",
    ),
  );
  cursor.bar = () => {
    const [from, to] = cursor.domain;
    const text = `rounds ${from} to ${to}`;
    if (said.textContent !== text) said.textContent = text;
    for (const each of [back, on, far, whole]) each.disabled = cursor.range === null;
  };
  cursor.bar();
  return bar;
}
