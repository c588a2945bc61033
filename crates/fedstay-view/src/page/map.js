// For problems with two weights: where the agents are content, and the trajectory of the model.

import { readMap } from "./data.js";
import { drawDelivered } from "./delivered.js";
import { lineSign } from "./sign.js";
import { agentLook, colours, onTheme } from "./theme.js";
import { el, number, several } from "./words.js";

const SECONDS = 8;

export class Map2 {
  constructor(run) {
    this.run = run;
    this.map = null;
    this.at = null;
    this.playing = false;
    this.canvas = el("canvas", {
      role: "img",
      "aria-label": "Contour map of the losses with the model’s trajectory",
    });
    this.play = el("button", { type: "button", class: "play", "aria-pressed": "false" }, "play");
    this.play.addEventListener("click", () => this.toggle());
    this.slider = el("input", {
      type: "range",
      min: "0",
      max: "0",
      value: "0",
      "aria-label": "Round on the map",
    });
    this.slider.addEventListener("input", () => {
      this.pause();
      this.at = Number(this.slider.value) === this.last() ? null : Number(this.slider.value);
      this.draw();
    });
    this.said = el("p", { class: "readout" });
    this.box = el("div", { class: "map" }, this.canvas);
    this.legend = el("div", { class: "legend" });
    this.section = el(
      "section",
      { class: "card", "aria-label": "Map of the losses" },
      el("div", { class: "head" }, el("h2", {}, "The trajectory, on a map of the losses")),
      el(
        "p",
        { class: "about" },
        "Tinted: where an agent is content, F ≤ ε. Lines: levels of its loss. The model " +
          "starts at the ring.",
      ),
      this.legend,
      this.box,
      el("div", { class: "controls" }, this.play, this.slider),
      this.said,
    );
    this.stop = onTheme(() => this.draw());
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.box);
  }

  remove() {
    this.pause();
    this.stop();
    this.sizes.disconnect();
  }

  last() {
    return this.map ? this.map.path.length - 1 : 0;
  }

  async update() {
    if (this.busy) return;
    this.busy = true;
    try {
      const map = await readMap(this.run.id);
      if (map) {
        const still =
          this.map && JSON.stringify([this.map.x, this.map.y]) === JSON.stringify([map.x, map.y]);
        this.map = map;
        this.slider.max = String(this.last());
        if (this.at === null) this.slider.value = String(this.last());
        if (!still) this.back = null;
        this.draw();
      }
    } finally {
      this.busy = false;
    }
  }

  toggle() {
    if (this.playing) return this.pause();
    this.playing = true;
    this.play.textContent = "pause";
    this.play.setAttribute("aria-pressed", "true");
    if (this.at === null || this.at >= this.last()) this.at = 0;
    // The first frame may be stamped before this moment, so it only starts the clock.
    let before = null;
    let place = this.at;
    const step = (now) => {
      if (!this.playing) return;
      if (before !== null) place += ((now - before) / 1000 / SECONDS) * Math.max(this.last(), 1);
      before = now;
      this.at = Math.min(Math.floor(place), this.last());
      this.slider.value = String(this.at);
      this.draw();
      if (this.at >= this.last()) this.pause();
      else requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
    return undefined;
  }

  pause() {
    this.playing = false;
    this.play.textContent = "play";
    this.play.setAttribute("aria-pressed", "false");
  }

  geometry() {
    const width = this.box.clientWidth;
    const height = Math.min(
      460,
      Math.round((width * (this.map.rows - 1)) / (this.map.columns - 1)),
    );
    const inner = Math.min(width, (height * (this.map.columns - 1)) / (this.map.rows - 1));
    const left = (width - inner) / 2;
    const { x, y } = this.map;
    return {
      width,
      height,
      left,
      inner,
      px: (value) => left + ((value - x[0]) / (x[1] - x[0])) * inner,
      py: (value) => height - ((value - y[0]) / (y[1] - y[0])) * height,
    };
  }

  draw() {
    if (!this.map || !this.box.clientWidth) return;
    const geometry = this.geometry();
    const scale = window.devicePixelRatio || 1;
    this.canvas.style.width = `${geometry.width}px`;
    this.canvas.style.height = `${geometry.height}px`;
    const [width, height] = [
      Math.round(geometry.width * scale),
      Math.round(geometry.height * scale),
    ];
    if (this.canvas.width !== width || this.canvas.height !== height)
      [this.canvas.width, this.canvas.height] = [width, height];
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, geometry.width, geometry.height);
    context.save();
    context.beginPath();
    context.rect(geometry.left, 0, geometry.inner, geometry.height);
    context.clip();
    this.map.losses.forEach((losses, index) => this.drawAgent(context, geometry, losses, index));
    this.drawWay(context, geometry);
    context.restore();
    context.strokeStyle = colours().line;
    context.strokeRect(geometry.left + 0.5, 0.5, geometry.inner - 1, geometry.height - 1);
    this.drawScale(context, geometry);
    this.say();
  }

  drawAgent(context, geometry, losses, index) {
    const { colour } = agentLook(index);
    const agent = this.run.detail.agents[index];
    const epsilon = agent ? agent.epsilon : null;
    const highest = losses.reduce((most, loss) => Math.max(most, loss), 0);
    if (epsilon !== null) {
      const inside = new Path2D();
      this.fill(inside, geometry, losses, epsilon);
      context.fillStyle = colour;
      context.globalAlpha = 0.24;
      context.fill(inside);
      context.globalAlpha = 1;
    }
    const levels = [epsilon, ...[0.12, 0.25, 0.4, 0.6, 0.8].map((share) => share * highest)];
    levels.forEach((level, place) => {
      if (level === null) return;
      const path = new Path2D();
      this.lines(path, geometry, losses, level);
      context.strokeStyle = colour;
      context.lineWidth = place === 0 ? 2 : 1;
      context.globalAlpha = place === 0 ? 1 : 0.55;
      context.stroke(path);
      context.globalAlpha = 1;
    });
  }

  // The crossings of a level on the four edges of every cell, and the corners below it.
  cells(losses, level, visit) {
    const { columns, rows, x, y } = this.map;
    const at = (column, row) => losses[row * columns + column];
    const place = (column, row) => [
      x[0] + ((x[1] - x[0]) * column) / (columns - 1),
      y[0] + ((y[1] - y[0]) * row) / (rows - 1),
    ];
    for (let row = 0; row + 1 < rows; row += 1) {
      for (let column = 0; column + 1 < columns; column += 1) {
        const corners = [
          [column, row],
          [column + 1, row],
          [column + 1, row + 1],
          [column, row + 1],
        ];
        const ring = [];
        const cuts = [];
        for (let side = 0; side < 4; side += 1) {
          const [a, b] = [corners[side], corners[(side + 1) % 4]];
          const [u, v] = [at(...a), at(...b)];
          if (u <= level) ring.push(place(...a));
          if (u <= level !== v <= level) {
            const share = (level - u) / (v - u);
            const [p, q] = [place(...a), place(...b)];
            const cut = [p[0] + share * (q[0] - p[0]), p[1] + share * (q[1] - p[1])];
            ring.push(cut);
            cuts.push(cut);
          }
        }
        visit(ring, cuts);
      }
    }
  }

  lines(path, { px, py }, losses, level) {
    this.cells(losses, level, (ring, cuts) => {
      for (let i = 0; i + 1 < cuts.length; i += 2) {
        path.moveTo(px(cuts[i][0]), py(cuts[i][1]));
        path.lineTo(px(cuts[i + 1][0]), py(cuts[i + 1][1]));
      }
    });
  }

  fill(path, { px, py }, losses, level) {
    this.cells(losses, level, (ring) => {
      if (ring.length < 3) return;
      // Half a pixel more, or seams would show between the cells.
      const middle = ring.reduce(
        ([a, b], [x, y]) => [a + px(x) / ring.length, b + py(y) / ring.length],
        [0, 0],
      );
      ring.forEach(([x, y], place) => {
        const [u, v] = [px(x), py(y)];
        const [w, z] = [u + Math.sign(u - middle[0]) * 0.3, v + Math.sign(v - middle[1]) * 0.3];
        if (place === 0) path.moveTo(w, z);
        else path.lineTo(w, z);
      });
      path.closePath();
    });
  }

  drawWay(context, { px, py }) {
    const { ink, card: paper } = colours();
    const end = this.at === null ? this.last() : this.at;
    const { path } = this.map;
    const way = new Path2D();
    path
      .slice(0, end + 1)
      .forEach(([, x, y], place) => (place ? way.lineTo(px(x), py(y)) : way.moveTo(px(x), py(y))));
    for (const [colour, width] of [
      [paper, 5],
      [ink, 2.2],
    ]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.lineJoin = "round";
      context.stroke(way);
    }
    const dot = ([, x, y], radius, fill) => {
      context.beginPath();
      context.arc(px(x), py(y), radius, 0, 7);
      context.fillStyle = fill;
      context.fill();
      context.strokeStyle = ink;
      context.lineWidth = 2;
      context.stroke();
    };
    dot(path[0], 5, paper);
    dot(path[end], 5, ink);
    const delivered = this.delivered(end);
    if (delivered) {
      const from = [px(path[end][1]), py(path[end][2])];
      drawDelivered(context, {
        from,
        at: [px(delivered[0]), py(delivered[1])],
        colour: ink,
        size: 7,
      });
    }
    for (const agent of this.run.detail.agents) {
      const place = agent.left === null ? -1 : path.findIndex(([round]) => round >= agent.left);
      if (place < 0 || place > end) continue;
      const [x, y] = [px(path[place][1]), py(path[place][2])];
      for (const [colour, width] of [
        [paper, 6.5],
        [ink, 2.6],
      ]) {
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.beginPath();
        context.moveTo(x - 6, y - 6);
        context.lineTo(x + 6, y + 6);
        context.moveTo(x + 6, y - 6);
        context.lineTo(x - 6, y + 6);
        context.stroke();
      }
    }
  }

  // The delivered weights, at the end of the trajectory of a run that is over.
  delivered(end) {
    const { summary } = this.run.detail;
    const weights = summary && summary.weights;
    return end === this.last() &&
      Array.isArray(weights) &&
      weights.length === 2 &&
      weights.every(Number.isFinite)
      ? weights
      : null;
  }

  drawScale(context, { left, inner, height }) {
    const { x, y } = this.map;
    context.fillStyle = colours().ink;
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "bottom";
    context.textAlign = "left";
    context.fillText(`w₁ ${number(x[0], 2)}`, left + 6, height - 5);
    context.textAlign = "right";
    context.fillText(number(x[1], 2), left + inner - 6, height - 5);
    context.textBaseline = "top";
    context.textAlign = "left";
    context.fillText(`w₂ ${number(y[1], 2)}`, left + 6, 6);
  }

  say() {
    const end = this.at === null ? this.last() : this.at;
    const [round, x, y] = this.map.path[end];
    const left = this.run.detail.agents.filter(
      (agent) => agent.left !== null && agent.left <= round,
    );
    const who = left.length
      ? `left: ${left
          .slice(0, 6)
          .map(({ called }) => called)
          .join(", ")}`
      : "nobody has left";
    const delivered = this.delivered(end);
    const after = delivered
      ? ` · delivered ◆ (${number(delivered[0], 3)}, ${number(delivered[1], 3)})`
      : "";
    const text = `round ${round} · w = (${number(x, 3)}, ${number(y, 3)})${after} · ${who}`;
    if (this.said.textContent !== text) this.said.textContent = text;
    const drawn = this.run.detail.agents.slice(0, this.map.losses.length);
    const wanted = drawn.map((agent) => agent.called).join();
    if (this.legend.dataset.keys !== wanted) {
      this.legend.dataset.keys = wanted;
      this.legend.replaceChildren(
        ...drawn.map((agent, index) =>
          el("span", { class: "key" }, lineSign(agentLook(index)), agent.called),
        ),
      );
    }
    this.canvas.setAttribute(
      "aria-label",
      `Contour map of the losses of ${several(drawn.length, "agent")} ` +
        `with the model’s trajectory. ${text}`,
    );
  }
}
