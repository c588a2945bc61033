// A pair of axes on two canvases: one for what is drawn once, one for the cursor above it. All plots
// of a view share the cursor and the margins, so rounds stand below each other.

import { colours, onTheme } from "./theme.js";
import { short } from "./words.js";

const LEFT = 58;
const RIGHT = 16;
const TOP = 10;
const BOTTOM = 26;

// The round under the cursor of all plots; null when there is none.
export class Cursor {
  constructor() {
    this.round = null;
    this.listeners = new Set();
  }

  move(round) {
    if (round === this.round) return;
    this.round = round;
    for (const listener of this.listeners) listener(round);
  }
}

// Round values within a range, about as many as asked for.
export function ticks(low, high, target) {
  const raw = (high - low) / Math.max(target, 1);
  if (!(raw > 0) || !Number.isFinite(raw)) return [];
  const power = 10 ** Math.floor(Math.log10(raw));
  const factor = [1, 2, 5, 10].find((one) => one * power >= raw * 0.999) || 10;
  const step = factor * power;
  const first = Math.ceil(low / step - 1e-9);
  const count = Math.floor(high / step + 1e-9) - first;
  return Array.from({ length: Math.max(0, Math.min(count, 60)) + 1 }, (_, i) => (first + i) * step).filter((value) => value <= high + step * 1e-9);
}

function logTicks(low, high) {
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  const factors = to - from <= 3 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((to - from) / 6));
  const values = [];
  for (let e = from; e <= to; e += every) for (const factor of factors) values.push(factor * 10 ** e);
  return values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

// A number a little above, so that a growing axis seldom moves.
export function roomFor(value) {
  if (!(value > 10)) return 10;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].map((one) => Math.round(one * power)).find((one) => one >= value) || value;
}

export class Plot {
  // `says` turns an index of the series into a sentence; `draws` paints below, `marks` above.
  constructor({ label, height, cursor, draws, marks, says, hover }) {
    this.cursor = cursor;
    this.draws = draws;
    this.marks = marks || (() => {});
    this.says = says;
    this.hover = hover;
    this.domain = [1, 10];
    this.range = [0, 1];
    this.log = false;
    this.first = new Float64Array(0);
    this.bucket = 1;
    this.box = document.createElement("div");
    this.box.className = "plot";
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "slider");
    this.box.setAttribute("aria-label", label);
    this.box.setAttribute("aria-valuemin", "1");
    this.base = document.createElement("canvas");
    this.over = document.createElement("canvas");
    for (const canvas of [this.base, this.over]) canvas.setAttribute("aria-hidden", "true");
    this.box.append(this.base, this.over);
    this.readout = document.createElement("p");
    this.readout.className = "readout";
    this.setHeight(height);
    this.events();
    this.stop = [onTheme(() => this.later())];
    const follow = () => this.drawCursor();
    cursor.listeners.add(follow);
    this.stop.push(() => cursor.listeners.delete(follow));
    this.sizes = new ResizeObserver(() => this.later());
    this.sizes.observe(this.box);
  }

  remove() {
    this.stop.forEach((stop) => stop());
    this.sizes.disconnect();
    cancelAnimationFrame(this.waiting);
  }

  setHeight(height) {
    if (this.height === height) return;
    this.height = height;
    this.box.style.height = `${height}px`;
  }

  events() {
    const at = (event) => {
      const bounds = this.box.getBoundingClientRect();
      const x = event.clientX - bounds.left;
      this.pointer = event.clientY - bounds.top;
      this.cursor.move(this.roundNear(this.toRound(x)));
      if (this.hover) this.hover(this.index(), this.pointer);
    };
    this.box.addEventListener("pointermove", at);
    this.box.addEventListener("pointerdown", at);
    this.box.addEventListener("pointerleave", () => {
      this.pointer = null;
      if (this.hover) this.hover(-1, null);
      if (document.activeElement !== this.box) this.cursor.move(null);
    });
    this.box.addEventListener("blur", () => this.cursor.move(null));
    this.box.addEventListener("focus", () => {
      if (this.cursor.round === null && this.first.length) this.cursor.move(this.first[this.first.length - 1]);
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  key(event) {
    const last = this.first.length - 1;
    if (last < 0) return;
    const here = this.index() < 0 ? last : this.index();
    const far = Math.max(1, Math.round(last / 20));
    const moves = {
      ArrowLeft: here - 1, ArrowDown: here - 1, ArrowRight: here + 1, ArrowUp: here + 1,
      PageDown: here - far, PageUp: here + far, Home: 0, End: last,
    };
    if (event.key === "Escape") {
      this.cursor.move(null);
    } else if (event.key in moves) {
      this.cursor.move(this.first[Math.max(0, Math.min(last, moves[event.key]))]);
    } else {
      return;
    }
    event.preventDefault();
  }

  // The place of the cursor in the series, or −1.
  index() {
    if (this.cursor.round === null || !this.first.length) return -1;
    let low = 0;
    let high = this.first.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.first[middle] <= this.cursor.round) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  roundNear(round) {
    if (!this.first.length) return null;
    const before = this.cursor.round;
    this.cursor.round = Math.max(round + 0.5, this.first[0]);
    const index = this.index();
    this.cursor.round = before;
    return this.first[index];
  }

  setSeries(series, end) {
    this.first = series ? series.first : new Float64Array(0);
    this.bucket = series ? series.bucket : 1;
    this.domain = [1, Math.max(end, 2)];
    this.box.setAttribute("aria-valuemax", String(this.first.length ? this.first[this.first.length - 1] : 1));
    this.later();
  }

  get width() {
    return this.box.clientWidth;
  }

  x(round) {
    return LEFT + ((round - this.domain[0]) / (this.domain[1] - this.domain[0])) * (this.width - LEFT - RIGHT);
  }

  toRound(x) {
    return this.domain[0] + ((x - LEFT) / (this.width - LEFT - RIGHT)) * (this.domain[1] - this.domain[0]);
  }

  y(value) {
    const [low, high] = this.range;
    const inner = this.height - TOP - BOTTOM;
    if (!this.log) return TOP + ((high - value) / (high - low)) * inner;
    return TOP + (Math.log(high / Math.max(value, low * 0.1)) / Math.log(high / low)) * inner;
  }

  get area() {
    return { left: LEFT, right: this.width - RIGHT, top: TOP, bottom: this.height - BOTTOM };
  }

  // Draws at the next frame, once, however often it is asked to.
  later() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.draw();
    });
  }

  context(canvas) {
    const scale = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.width * scale), Math.round(this.height * scale)];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, this.width, this.height);
    context.font = "12px system-ui, sans-serif";
    context.lineJoin = "round";
    return context;
  }

  draw() {
    if (!this.width) return;
    const since = performance.now();
    const context = this.context(this.base);
    this.frame(context);
    context.save();
    context.beginPath();
    const { left, right, top, bottom } = this.area;
    context.rect(left - 1, top - 6, right - left + 8, bottom - top + 7);
    context.clip();
    if (this.first.length) this.draws(context, this);
    context.restore();
    if (this.beside && this.first.length) this.beside(context, this);
    this.drawCursor();
    this.cost = performance.now() - since;
  }

  frame(context) {
    const { ink, faint, grid, line } = colours();
    const { left, right, top, bottom } = this.area;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const rows = this.categories ? [] : this.log ? logTicks(...this.range) : ticks(this.range[0], this.range[1], Math.max(2, (bottom - top) / 38));
    for (const value of rows) {
      const y = Math.round(this.y(value)) + 0.5;
      context.strokeStyle = grid;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(right, y);
      context.stroke();
      context.fillStyle = faint;
      context.fillText(this.format ? this.format(value) : short(value), left - 8, y);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = faint;
    const columns = ticks(this.domain[0], this.domain[1], Math.max(2, (right - left) / 90)).filter((value) => Number.isInteger(value) && value >= 1);
    if (!columns.includes(1) && (columns.length === 0 || this.x(columns[0]) - left > 30)) columns.unshift(1);
    for (const value of columns) {
      const x = Math.round(this.x(value)) + 0.5;
      context.strokeStyle = line;
      context.beginPath();
      context.moveTo(x, bottom);
      context.lineTo(x, bottom + 4);
      context.stroke();
      const label = String(value);
      context.fillText(label, Math.min(x, right - context.measureText(label).width / 2 + 10), bottom + 8);
    }
    context.textAlign = "right";
    context.fillText("round", left - 8, bottom + 8);
    context.strokeStyle = line;
    context.beginPath();
    context.moveTo(left - 0.5, top);
    context.lineTo(left - 0.5, bottom + 0.5);
    context.lineTo(right, bottom + 0.5);
    context.stroke();
    context.fillStyle = ink;
  }

  drawCursor() {
    if (!this.width) return;
    const context = this.context(this.over);
    const index = this.index();
    if (index >= 0) {
      const { top, bottom } = this.area;
      const x = Math.round(this.x(this.middle(index))) + 0.5;
      context.strokeStyle = colours().ink;
      context.globalAlpha = 0.55;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x, top);
      context.lineTo(x, bottom);
      context.stroke();
      context.globalAlpha = 1;
    }
    this.marks(context, this, index);
    const said = index >= 0 ? this.says(index) : "";
    if (this.readout.textContent !== said) this.readout.textContent = said;
    if (index >= 0) {
      this.box.setAttribute("aria-valuenow", String(this.first[index]));
      this.box.setAttribute("aria-valuetext", said);
    }
  }

  // The place of a bucket: the middle of its rounds.
  middle(index) {
    return this.first[index] + (this.bucket - 1) / 2;
  }

  rounds(index) {
    const from = this.first[index];
    return this.bucket === 1 ? `round ${from}` : `rounds ${from}–${from + this.bucket - 1}`;
  }
}

// The smallest and largest value of some columns, without NaN.
export function extent(columns) {
  let low = Infinity;
  let high = -Infinity;
  for (const { low: lows, high: highs } of columns) {
    for (let i = 0; i < lows.length; i += 1) {
      if (lows[i] < low) low = lows[i];
      if (highs[i] > high) high = highs[i];
    }
  }
  return low <= high ? [low, high] : null;
}

// Adds a column to a path: one point where a bucket is one round, both its ends where it is more.
export function trace(path, plot, column, from = 0, to = column.low.length) {
  let pen = false;
  for (let i = from; i < to; i += 1) {
    const low = column.low[i];
    if (low !== low) continue;
    const high = column.high[i];
    const x = plot.x(plot.middle(i));
    if (pen) path.lineTo(x, plot.y(high));
    else path.moveTo(x, plot.y(high));
    if (high !== low) path.lineTo(x, plot.y(low));
    pen = true;
  }
}
