// A pair of axes on two canvases: one for what is drawn once, one above it for what is highlighted
// or dragged over. The cursor is an element above both, so that moving it draws nothing again. All
// plots of a view share it and the margins, so rounds stand below each other.

import { ValueList } from "./values.js";
import { colours, onTheme } from "./theme.js";
import { axisNumber } from "./words.js";

const LEFT = 58;
const RIGHT = 16;
const TOP = 10;
const BOTTOM = 26;
// A pointer that moved less than this has clicked.
const STILL = 6;

// Charts that are out of sight are drawn when they come near it, or when everything is printed.
const plots = new WeakMap();
const all = new Set();
const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) plots.get(target)?.comes(isIntersecting);
  },
  { rootMargin: "300px 0px" },
);
addEventListener("beforeprint", () =>
  all.forEach((plot) => {
    plot.inSight = true;
    plot.draw();
  }),
);

// What one movement of the pointer changes: every plot that has to follow, and whether its
// highlight has changed too.
let gathered = null;
function gather(act) {
  gathered = new Map();
  try {
    act();
  } finally {
    const all = gathered;
    gathered = null;
    all.forEach((marks, plot) => plot.follow(marks));
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
  return Array.from(
    { length: Math.max(0, Math.min(count, 60)) + 1 },
    (_, i) => (first + i) * step,
  ).filter((value) => value <= high + step * 1e-9);
}

function logTicks(low, high) {
  const from = Math.floor(Math.log10(low));
  const to = Math.ceil(Math.log10(high));
  const factors = to - from <= 3 ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil((to - from) / 6));
  const values = [];
  for (let e = from; e <= to; e += every)
    for (const factor of factors) values.push(factor * 10 ** e);
  return values.filter((value) => value >= low * 0.999 && value <= high * 1.001);
}

// A number a little above, so that a growing axis seldom moves.
export function roomFor(value) {
  if (!(value > 10)) return 10;
  const power = 10 ** Math.floor(Math.log10(value));
  return (
    [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10]
      .map((one) => Math.round(one * power))
      .find((one) => one >= value) || value
  );
}

export class Plot {
  // `says` turns an index of the series into a sentence, `values` into a list of all values there;
  // `draws` paints below, and `marks` above what is highlighted, while `marked` says that there is
  // something.
  constructor({ label, height, cursor, draws, marks, marked, says, values, hover }) {
    this.cursor = cursor;
    this.draws = draws;
    this.marks = marks || (() => {});
    this.marked = marked || (() => false);
    this.says = says;
    this.hover = hover;
    this.range = [0, 1];
    this.log = false;
    this.first = new Float64Array(0);
    this.bucket = 1;
    this.box = document.createElement("div");
    this.box.className = "plot";
    this.box.tabIndex = 0;
    this.box.setAttribute("role", "slider");
    this.box.setAttribute("aria-label", label);
    for (const [name, value] of [
      ["min", "1"],
      ["max", "1"],
      ["now", "1"],
      ["text", "no round chosen"],
    ])
      this.box.setAttribute(`aria-value${name}`, value);
    this.base = document.createElement("canvas");
    this.over = document.createElement("canvas");
    this.line = document.createElement("div");
    this.line.className = "cursor";
    this.line.hidden = true;
    for (const part of [this.base, this.over, this.line]) part.setAttribute("aria-hidden", "true");
    this.box.append(this.base, this.over, this.line);
    this.over.hidden = true;
    this.readout = document.createElement("p");
    this.readout.className = "readout";
    this.list = new ValueList(this, values || (() => []));
    this.setHeight(height);
    this.events();
    this.stop = [onTheme(() => this.later())];
    const follow = () => this.follow();
    cursor.listeners.add(follow);
    this.stop.push(() => cursor.listeners.delete(follow));
    // Asking the box for its width while others still change would lay the page out once per chart.
    this.width = 0;
    this.sizes = new ResizeObserver(([{ contentRect }]) => {
      this.width = Math.round(contentRect.width);
      this.draw();
    });
    this.sizes.observe(this.box);
    [this.inSight, this.stale] = [false, false];
    plots.set(this.box, this);
    all.add(this);
    sight.observe(this.box);
  }

  comes(inSight) {
    this.inSight = inSight;
    if (inSight && this.stale) this.draw();
  }

  remove() {
    this.stop.forEach((stop) => stop());
    this.sizes.disconnect();
    sight.unobserve(this.box);
    all.delete(this);
    cancelAnimationFrame(this.waiting);
    cancelAnimationFrame(this.moving);
  }

  setHeight(height) {
    if (this.height === height) return;
    this.height = height;
    this.box.style.height = `${height}px`;
  }

  events() {
    const place = (event) => {
      const bounds = this.box.getBoundingClientRect();
      return [event.clientX - bounds.left, event.clientY - bounds.top];
    };
    const at = (event) => {
      this.still();
      const [x, y] = place(event);
      this.pointer = y;
      gather(() => {
        this.cursor.move(this.roundNear(this.toRound(x)));
        if (this.hover) this.hover(this.index(), y);
      });
    };
    // However often the pointer moves, what it points at is looked up once per frame.
    this.box.addEventListener("pointermove", (event) => {
      this.moved = event;
      this.moving ||= requestAnimationFrame(() => {
        this.moving = 0;
        if (this.drag) this.dragged(place(this.moved)[0]);
        if (!this.drag || !this.drag.pan) at(this.moved);
      });
    });
    this.box.addEventListener("pointerdown", (event) => {
      at(event);
      if (event.button !== 0 || event.pointerType === "touch") return;
      this.drag = {
        from: place(event)[0],
        to: null,
        pan: event.shiftKey,
        domain: this.cursor.domain,
      };
      this.box.setPointerCapture(event.pointerId);
    });
    this.box.addEventListener("pointerup", (event) => {
      const [x] = place(event);
      this.still();
      if (this.drag) this.dragged(x);
      this.dropped(x);
    });
    this.box.addEventListener("pointercancel", () => {
      this.drag = null;
      this.follow(true);
    });
    this.box.addEventListener("dblclick", () => this.cursor.zoom(null));
    this.box.addEventListener("wheel", (event) => this.wheel(event, place(event)[0]), {
      passive: false,
    });
    this.box.addEventListener("pointerleave", () => {
      this.still();
      this.pointer = null;
      if (this.hover) this.hover(-1, null);
      if (document.activeElement !== this.box) this.cursor.move(null);
      this.list.update();
    });
    this.box.addEventListener("blur", () => this.cursor.move(null));
    this.box.addEventListener("focus", () => {
      // A click focuses too, but it has a round already.
      if (this.cursor.shown === null && this.first.length)
        this.cursor.move(this.first[this.lastShown()]);
    });
    this.box.addEventListener("keydown", (event) => this.key(event));
  }

  // What the pointer did before is forgotten.
  still() {
    cancelAnimationFrame(this.moving);
    this.moving = 0;
  }

  dragged(x) {
    const { from, pan, domain } = this.drag;
    if (!this.drag.to && Math.abs(x - from) < STILL) return;
    this.drag.to = x;
    if (pan) {
      const by = ((from - x) / (this.area.right - this.area.left)) * (domain[1] - domain[0]);
      const kept = Math.max(1 - domain[0], Math.min(this.cursor.end - domain[1], by));
      if (this.cursor.range) this.cursor.zoom([domain[0] + kept, domain[1] + kept]);
    } else {
      this.follow(true);
    }
  }

  dropped(x) {
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    if (drag.to === null) {
      if (this.first.length) this.cursor.pin(this.roundNear(this.toRound(x)));
    } else if (!drag.pan) {
      const ends = [drag.from, x]
        .map((one) => this.toRound(Math.max(LEFT, Math.min(this.area.right, one))))
        .sort((a, b) => a - b);
      this.cursor.zoom(ends);
      this.follow(true);
    }
  }

  // With Ctrl (which pinching on a pad sends too) it zooms; sideways it moves; else the page
  // scrolls.
  wheel(event, x) {
    const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
    if (event.ctrlKey || event.metaKey)
      this.cursor.zoomBy(event.deltaY > 0 ? 1.25 : 0.8, this.toRound(x));
    else if (sideways && this.cursor.range)
      this.cursor.panBy(event.deltaX / (this.area.right - this.area.left));
    else return;
    event.preventDefault();
  }

  key(event) {
    const last = this.first.length - 1;
    if (last < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const here = this.index() < 0 ? last : this.index();
    const far = Math.max(1, Math.round(last / 20));
    const zooms = { "+": 0.5, "=": 0.5, "-": 2, "−": 2, _: 2 };
    const moves = {
      ArrowLeft: here - 1,
      ArrowDown: here - 1,
      ArrowRight: here + 1,
      ArrowUp: here + 1,
      PageDown: here - far,
      PageUp: here + far,
      Home: 0,
      End: last,
    };
    if (event.key === "Escape") {
      if (this.cursor.pinned !== null) this.cursor.pin(this.cursor.pinned);
      this.cursor.move(null);
    } else if (event.key === " " || event.key === "Enter") {
      this.cursor.pin(this.first[here]);
    } else if (event.key in zooms) {
      this.cursor.zoomBy(zooms[event.key], this.first[here]);
    } else if (event.key === "0") {
      this.cursor.zoom(null);
    } else if (event.shiftKey && event.key.startsWith("Arrow")) {
      this.cursor.panBy(["ArrowLeft", "ArrowDown"].includes(event.key) ? -0.25 : 0.25);
    } else if (event.key in moves) {
      this.cursor.move(this.roundOf(event.key, moves[event.key]));
      this.reveal();
    } else {
      return;
    }
    event.preventDefault();
  }

  // The round at a place of the series, or the next one beyond its ends.
  roundOf(key, place) {
    const end = this.first.length - 1;
    if (key === "Home") return 1;
    if (key === "End") return this.last;
    if (place < 0) return Math.max(1, this.first[0] - 1);
    return place > end ? Math.min(this.last, this.first[end] + this.bucket) : this.first[place];
  }

  // Brings the round that was chosen by key into what is shown.
  reveal() {
    const [from, to] = this.cursor.domain;
    const { round } = this.cursor;
    if (round < from || round > to)
      this.cursor.zoom([round - (to - from) / 2, round + (to - from) / 2]);
  }

  get domain() {
    return this.cursor.domain;
  }

  // The last place in the series that is shown.
  lastShown() {
    return Math.max(0, windowOf(this.first, this.domain)[1] - 1);
  }

  // The place of the cursor in the series, or −1.
  index() {
    if (this.cursor.shown === null || !this.first.length) return -1;
    return this.placeOf(this.cursor.shown);
  }

  placeOf(round) {
    let low = 0;
    let high = this.first.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.first[middle] <= round) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  roundNear(round) {
    if (!this.first.length) return null;
    const [from, to] = windowOf(this.first, this.domain);
    const place = this.placeOf(Math.max(round + 0.5, this.first[0]));
    return this.first[Math.max(from, Math.min(to - 1, place))];
  }

  // `last` is the last round there is; the series may be of some of the rounds only.
  setSeries(
    series,
    last = series && series.first.length ? series.first[series.first.length - 1] : 1,
  ) {
    this.first = series ? series.first : new Float64Array(0);
    this.bucket = series ? series.bucket : 1;
    this.last = last;
    this.box.setAttribute("aria-valuemax", String(last));
    if (this.cursor.shown === null) this.box.setAttribute("aria-valuenow", String(last));
    this.later();
  }

  x(round) {
    return this.scales().x(round);
  }

  toRound(x) {
    return (
      this.domain[0] +
      ((x - LEFT) / (this.width - LEFT - RIGHT)) * (this.domain[1] - this.domain[0])
    );
  }

  y(value) {
    return this.scales().y(value);
  }

  // Where rounds and values stand, and where the places of the series do: asked once for many
  // points.
  scales() {
    const [[from, to], [low, high]] = [this.domain, this.range];
    const [wide, inner] = [(this.width - LEFT - RIGHT) / (to - from), this.height - TOP - BOTTOM];
    const [linear, log] = [inner / (high - low), inner / Math.log(high / low)];
    const { first } = this;
    const half = (this.bucket - 1) / 2;
    return {
      x: (round) => LEFT + (round - from) * wide,
      y: this.log
        ? (value) => TOP + Math.log(high / Math.max(value, low * 0.1)) * log
        : (value) => TOP + (high - value) * linear,
      middle: (index) => first[index] + half,
    };
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
    this.stale = !this.inSight;
    if (this.inSight) this.paint(this.context(this.base));
    this.follow(true);
  }

  // Everything but the cursor, on the screen or into a file.
  paint(context) {
    this.frame(context);
    context.save();
    context.beginPath();
    const { left, right, top, bottom } = this.area;
    context.rect(left - 1, top - 6, right - left + 8, bottom - top + 7);
    context.clip();
    if (this.first.length) this.draws(context, this);
    context.restore();
    if (this.beside && this.first.length) this.beside(context, this);
  }

  frame(context) {
    const { ink, faint, grid, line } = colours();
    const { left, right, top, bottom } = this.area;
    context.lineWidth = 1;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const rows = this.categories
      ? []
      : this.log
        ? logTicks(...this.range)
        : ticks(this.range[0], this.range[1], Math.max(2, (bottom - top) / 38));
    for (const value of rows) {
      const y = Math.round(this.y(value)) + 0.5;
      context.strokeStyle = grid;
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(right, y);
      context.stroke();
      context.fillStyle = faint;
      context.fillText(this.format ? this.format(value) : axisNumber(value), left - 8, y);
    }
    context.textAlign = "center";
    context.textBaseline = "top";
    context.fillStyle = faint;
    const columns = ticks(this.domain[0], this.domain[1], Math.max(2, (right - left) / 90)).filter(
      (value) => Number.isInteger(value) && value >= 1,
    );
    if (
      this.domain[0] === 1 &&
      !columns.includes(1) &&
      (columns.length === 0 || this.x(columns[0]) - left > 30)
    )
      columns.unshift(1);
    for (const value of columns) {
      const x = Math.round(this.x(value)) + 0.5;
      context.strokeStyle = line;
      context.beginPath();
      context.moveTo(x, bottom);
      context.lineTo(x, bottom + 4);
      context.stroke();
      const label = String(value);
      context.fillText(
        label,
        Math.min(x, right - context.measureText(label).width / 2 + 10),
        bottom + 8,
      );
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

  // Takes note of where the cursor is, and with `marks` of what is highlighted or dragged over.
  follow(marks = false) {
    if (gathered) {
      gathered.set(this, marks || gathered.get(this) === true);
      return;
    }
    if (!this.width) return;
    const index = this.index();
    this.placeLine(index);
    if (marks && this.inSight) this.drawMarks();
    const said = index >= 0 ? this.says(index) : "";
    if (this.said !== said) {
      this.said = said;
      this.readout.textContent = said;
    }
    this.list.update();
    if (index >= 0) {
      this.box.setAttribute("aria-valuenow", String(this.first[index]));
      this.box.setAttribute("aria-valuetext", said);
    } else if (this.box.getAttribute("aria-valuetext") !== "no round chosen") {
      this.box.setAttribute("aria-valuetext", "no round chosen");
    }
  }

  placeLine(index) {
    const { left, right } = this.area;
    const x = index >= 0 ? Math.round(this.x(this.middle(index))) : NaN;
    const there = x >= left - 1 && x <= right + 1;
    if (this.line.hidden === there) this.line.hidden = !there;
    if (!there) return;
    const pinned = String(this.cursor.round === null || this.cursor.round === this.cursor.pinned);
    if (this.line.dataset.pinned !== pinned) this.line.dataset.pinned = pinned;
    this.line.style.transform = `translateX(${x}px)`;
  }

  // What is highlighted, and the rounds that are dragged over. A canvas with nothing on it is not
  // there.
  drawMarks() {
    const dragged = this.drag && this.drag.to !== null && !this.drag.pan;
    const some = dragged || this.marked(this);
    if (this.over.hidden === some) this.over.hidden = !some;
    if (!some) return;
    const context = this.context(this.over);
    const { left, right, top, bottom } = this.area;
    if (dragged) {
      const [from, to] = [this.drag.from, this.drag.to].map((x) =>
        Math.max(left, Math.min(right, x)),
      );
      context.fillStyle = colours().accent;
      context.globalAlpha = 0.18;
      context.fillRect(Math.min(from, to), top, Math.abs(to - from), bottom - top);
      context.globalAlpha = 1;
    }
    if (this.marked(this)) this.marks(context, this);
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

// The places of a series whose rounds are within a range, with one more on either side: [from, to).
export function windowOf(first, [from, to]) {
  let low = 0;
  while (low + 1 < first.length && first[low + 1] <= from) low += 1;
  let high = first.length;
  while (high - 1 > low && first[high - 1] > to) high -= 1;
  return [low, high];
}

// The smallest and largest value of some columns, without NaN; of the places in a window, if there
// is one.
export function extent(columns, [from, to] = [0, Infinity]) {
  let low = Infinity;
  let high = -Infinity;
  for (const { low: lows, high: highs } of columns) {
    const end = Math.min(to, lows.length);
    for (let i = from; i < end; i += 1) {
      if (lows[i] < low) low = lows[i];
      if (highs[i] > high) high = highs[i];
    }
  }
  return low <= high ? [low, high] : null;
}

// Adds a column to a path: one point where a bucket is one round, both its ends where it is more.
// `scales` are a plot's, with the middles of the column's own places. With `steps` a value holds
// until the next one is known: a number of agents is never half way between two.
export function trace(
  path,
  { x: across, y: up, middle },
  { low: lows, high: highs },
  from = 0,
  to = lows.length,
  steps = false,
) {
  let pen = false;
  let before = NaN;
  for (let i = from; i < to; i += 1) {
    const low = lows[i];
    if (low !== low) continue;
    const high = highs[i];
    const x = across(middle(i));
    if (steps && pen && high !== before) path.lineTo(x, up(before));
    if (pen) path.lineTo(x, up(high));
    else path.moveTo(x, up(high));
    if (high !== low) path.lineTo(x, up(low));
    pen = true;
    before = low;
  }
}
