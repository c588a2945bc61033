// What every agent does in every round: a strip with one row each.

import { Plot } from "./axes.js";
import { card, keys } from "./card.js";
import { newPath } from "./svg.js";
import { colours } from "./theme.js";

// The states by their names, in the order in which they are listed; the server has the words for
// them.
const LEGEND = ["free", "near", "left", "fault", "absent"];

export class Strip {
  constructor(run, cursor, highlight) {
    this.run = run;
    this.highlight = highlight;
    this.plot = new Plot({
      label: "Round, in the strip of states",
      height: 120,
      cursor,
      draws: (context, plot) => this.draw(context, plot),
      marks: (context, plot) => this.mark(context, plot),
      marked: () => this.highlight.shown() !== null && this.highlight.shown() < this.rows,
      says: (index) => this.says(index),
      hover: (index, y) => this.row(index, y),
    });
    this.plot.categories = true;
    this.plot.beside = (context, plot) => this.labels(context, plot);
    const made = card({
      title: "Who is in, who is about to leave, who has left",
      about:
        "One row per agent. A rule that acts on its prediction holds agents that are " +
        "about to leave; under averaging they leave.",
      plot: this.plot,
      of: () => run.detail.listing.name,
      lines: () => this.lines(),
    });
    Object.assign(this, { section: made.section, legend: made.legend });
    highlight.listeners.add(() => this.plot.follow(true));
  }

  get rows() {
    return this.run.drawn ? this.run.drawn.agents : 0;
  }

  update() {
    keys(
      this.legend,
      this.plot,
      LEGEND.map((name) => [name, this.text(name)]),
    );
    const rows = this.run.detail.agents_all || 0;
    this.plot.setHeight(Math.max(90, Math.min(340, Math.min(rows, 500) * 16)) + 36);
    this.plot.setSeries(this.run.drawn, this.run.detail.round);
  }

  // The words for a state.
  text(name) {
    return this.run.detail.states[this.run.codes[name]].text;
  }

  top(row) {
    const { top, bottom } = this.plot.area;
    return top + ((bottom - top) * row) / Math.max(this.rows, 1);
  }

  draw(context, plot) {
    const { drawn: series } = this.run;
    if (!series || !series.count) return;
    const { codes } = this.run;
    const palette = colours();
    const paints = this.run.detail.states.map(({ name }) => palette[name]);
    const gap = this.rows <= 40 ? 1 : 0;
    const hatch = newPath(context);
    const { x: across } = plot.scales();
    series.states.forEach((own, row) => {
      const [y, next] = [this.top(row), this.top(row + 1)];
      for (let i = 0; i < series.count;) {
        let end = i + 1;
        while (end < series.count && own[end] === own[i]) end += 1;
        const colour = paints[own[i]];
        if (colour) {
          const from = across(series.first[i] - 0.5);
          const to = across(
            end < series.count
              ? series.first[end] - 0.5
              : series.first[end - 1] + series.bucket - 0.5,
          );
          context.fillStyle = colour;
          // A single fault in a long run must still be seen.
          context.fillRect(
            from,
            y,
            Math.max(to - from, own[i] === codes.fault ? 2 : 0.75),
            next - y - gap,
          );
          if (own[i] === codes.left) hatch.rect(from, y, to - from, next - y - gap);
        }
        i = end;
      }
    });
    context.save();
    context.clip(hatch);
    context.strokeStyle = palette.faint;
    context.globalAlpha = 0.28;
    context.lineWidth = 1;
    const { left, right, top, bottom } = plot.area;
    context.beginPath();
    for (let x = left - (bottom - top); x < right; x += 7) {
      context.moveTo(x, bottom);
      context.lineTo(x + bottom - top, top);
    }
    context.stroke();
    context.restore();
  }

  // Names beside the rows.
  labels(context, plot) {
    if (!this.run.drawn) return;
    const height = this.top(1) - this.top(0);
    const every = Math.max(1, Math.ceil(14 / Math.max(height, 0.1)));
    context.fillStyle = colours().faint;
    context.textAlign = "right";
    context.textBaseline = "middle";
    this.run.detail.agents.slice(0, this.rows).forEach((agent, row) => {
      if (row % every === 0)
        context.fillText(agent.brief.slice(0, 7), plot.area.left - 8, this.top(row) + height / 2);
    });
  }

  row(index, y) {
    if (index < 0 || y === null) return this.highlight.hover(null);
    const { top, bottom } = this.plot.area;
    const row = Math.floor(((y - top) / (bottom - top)) * this.rows);
    return this.highlight.hover(row >= 0 && row < this.rows ? row : null);
  }

  mark(context, plot) {
    const shown = this.highlight.shown();
    context.strokeStyle = colours().ink;
    context.lineWidth = 1.5;
    const { left, right } = plot.area;
    context.strokeRect(
      left,
      this.top(shown) - 0.5,
      right - left,
      this.top(shown + 1) - this.top(shown),
    );
  }

  // The states by their numbers.
  lines() {
    const { first, bucket, states } = this.run.drawn;
    return states.map((own, row) => ({
      name: `state of ${this.run.detail.agents[row].called}`,
      column: { low: own, high: own },
      first,
      bucket,
      delivered: NaN,
    }));
  }

  says(index) {
    const { drawn: series } = this.run;
    const counts = this.run.detail.states.map(() => 0);
    for (const own of series.states) counts[own[index]] += 1;
    const parts = [this.plot.rounds(index)];
    const shown = this.highlight.shown();
    if (shown !== null && series.states[shown])
      parts.push(
        `${this.run.detail.agents[shown].called}: ` +
          `${this.run.detail.states[series.states[shown][index]].text}`,
      );
    parts.push(
      LEGEND.filter((name) => counts[this.run.codes[name]])
        .map((name) => `${counts[this.run.codes[name]]} ${this.text(name)}`)
        .join(", "),
    );
    return parts.join(" · ");
  }
}
