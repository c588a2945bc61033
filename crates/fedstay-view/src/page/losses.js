// Every agent's loss against its target loss.

import { Plot, extent, trace, windowOf } from "./axes.js";
import { card, choice, drawCross, keys } from "./card.js";
import { CHARTS } from "./charts.js";
import { drawDelivered, lastKnown, reaches } from "./delivered.js";
import { isOn, write } from "./state.js";
import { newPath } from "./svg.js";
import { agentLook, colours, onPage } from "./theme.js";
import { el, number, several, short } from "./words.js";

// Up to here every agent has a colour of its own; with more, colour says what they are doing.
const COLOURED = 12;

export class Losses {
  constructor(run, cursor, highlight) {
    this.run = run;
    this.highlight = highlight;
    this.margin = isOn("margin");
    this.plot = new Plot({
      label: "Round, in the chart of losses",
      height: 340,
      cursor,
      draws: (context, plot) => this.draw(context, plot),
      marks: (context, plot) => this.mark(context, plot),
      marked: () => this.marked(),
      says: (index) => this.says(index),
      values: (index) => this.values(index),
      hover: (index, y) => this.nearest(index, y),
    });
    this.plot.log = isOn("log");
    const what = choice(
      "What is drawn",
      [
        [false, "loss"],
        [true, "margin to ε"],
      ],
      this.margin,
      (margin) => {
        this.margin = margin;
        write("margin", margin);
        this.update();
      },
    );
    const scale = choice(
      "Scale of the losses",
      [
        [false, "linear"],
        [true, "log"],
      ],
      this.plot.log,
      (log) => {
        this.plot.log = log;
        write("log", log);
        this.update();
      },
    );
    const made = card({
      title: "Every agent’s loss against its target loss",
      about: "",
      plot: this.plot,
      extra: [what, scale],
      of: () => run.detail.listing.name,
      lines: () => this.lines(),
    });
    Object.assign(this, { section: made.section, about: made.about, legend: made.legend });
    this.empty = el("p", { class: "nothing" });
    this.plot.box.append(this.empty);
    highlight.listeners.add(() => this.plot.follow(true));
  }

  // Those whose lines there are; asked for every point, so they are kept.
  get agents() {
    const { detail, drawn } = this.run;
    const count = drawn ? drawn.agents : 0;
    if (this.listed?.of !== detail || this.listed.count !== count)
      this.listed = { of: detail, count, agents: detail.agents.slice(0, count) };
    return this.listed.agents;
  }

  few() {
    return this.agents.length <= COLOURED;
  }

  // What is taken off an agent's losses: nothing, or its ε where the margin is drawn.
  base(index) {
    const { epsilon } = this.agents[index];
    return this.margin && epsilon !== null ? epsilon : 0;
  }

  // A column as it is drawn: the loss, or how far it is above the agent's ε.
  column(columns, index) {
    const column = columns[index];
    const base = this.base(index);
    if (!base) return column;
    const shifted = (values) => values.map((value) => value - base);
    return {
      low: shifted(column.low),
      high: column.high === column.low ? shifted(column.low) : shifted(column.high),
    };
  }

  // What is drawn, in a sentence that fits the run.
  say() {
    const { own, previews, delivered } = this.run.detail;
    const which = previews
      ? "Thick: the loss of what each agent was shown, which it compares with its ε. Thin: " +
        "that of the server’s model, in the rounds in which it was measured; it is " +
        "delivered at the end."
      : own
        ? "Thick: the loss of each agent’s own model after its local steps, which it " +
          "compares with its ε. Thin: that of the model it received, in the rounds in " +
          "which it was measured."
        : "At the model each agent received. An agent whose loss reaches its ε leaves; " +
          "after that, and before it first takes part, its loss is drawn faintly, where it " +
          "is measured.";
    const end = delivered ? " ◆ is the delivered model." : "";
    if (this.about.textContent !== which + end) this.about.textContent = which + end;
  }

  // The losses under the delivered model, as they are drawn; NaN where there is none.
  ends() {
    return this.agents.map((agent, index) =>
      agent.delivered && agent.delivered.loss !== null
        ? agent.delivered.loss - this.base(index)
        : NaN,
    );
  }

  update() {
    const { drawn: series } = this.run;
    if (!series) return;
    this.say();
    this.columns = this.agents.map((_, index) => this.column(series.losses, index));
    this.received = series.received.map((_, index) => this.column(series.received, index));
    this.delivered = this.ends();
    const ends = { low: this.delivered, high: this.delivered };
    // Of a part of the rounds the values there fill the chart; the delivered model is behind the
    // last.
    const window = windowOf(series.first, this.plot.domain);
    const ended = reaches(this.run, window[1] - 1) ? [ends] : [];
    const both = (columns) => {
      const found = [extent(columns, window), extent(ended)].filter(Boolean);
      return found.length
        ? [Math.min(...found.map(([low]) => low)), Math.max(...found.map(([, high]) => high))]
        : null;
    };
    const whole = both([...this.columns, ...this.received]);
    // Of every agent only what it decides on: from when it first takes part to when it has left.
    const inside = this.columns
      .map((column, index) =>
        extent(
          [column],
          [Math.max(window[0], this.came(index)), Math.min(window[1], this.gone(index) + 1)],
        ),
      )
      .filter(Boolean);
    const own = inside.length
      ? [Math.min(...inside.map(([low]) => low)), Math.max(...inside.map(([, high]) => high))]
      : null;
    // The losses of agents that left may go out of sight; the losses they left at may not.
    const most = both(this.received);
    const known =
      own && whole
        ? [
            Math.min(own[0], whole[0]),
            Math.max(Math.min(whole[1], own[1] * 1.25), most ? most[1] : -Infinity),
          ]
        : whole;
    // The delivered model alone is not a curve: without a curve, say why there is none.
    const told = extent([...this.columns, ...this.received]) !== null;
    const detail = this.run.detail;
    const none = detail.sketch
      ? "A run from a sweep’s store, which keeps who left when and how good the model was " +
        "in some rounds. For every round, with every agent’s loss: fedstay sweep extract " +
        "--help"
      : detail.rounds
        ? "Nobody tells a loss in this run (privacy mode): the strip below shows who is " +
          "about to leave."
        : "Waiting for the first round …";
    this.empty.textContent = told ? "" : none;
    this.empty.hidden = told;
    const epsilons = this.margin
      ? [0]
      : this.agents.map((agent) => agent.epsilon).filter((epsilon) => epsilon !== null);
    const [low, high] = known || [0, 1];
    const top = Math.max(high, ...epsilons.slice(0, 1000));
    if (this.plot.log) {
      const floor = Math.max(
        Math.min(low > 0 ? low : 1e-4, ...epsilons.filter((epsilon) => epsilon > 0)),
        top * 1e-6,
      );
      this.plot.range = [floor / 1.3, top * 1.2];
    } else {
      const bottom = Math.min(0, low);
      this.plot.range = [bottom, top + 0.06 * (top - bottom || 1)];
    }
    this.above = whole !== null && whole[1] > this.plot.range[1];
    if (this.few()) {
      keys(this.legend, this.plot, [
        ...this.agents.map((agent, index) => ["dash", agent.called, agentLook(index)]),
        ["ring", "enters D"],
        ["cross", "leaves"],
        ...this.endKeys(),
      ]);
    } else {
      keys(this.legend, this.plot, [
        ["line-free", detail.states[this.run.codes.free].text],
        ["line-near", detail.states[this.run.codes.near].text],
        ["line-left", "before it came, after it left"],
        ["ring", "first enters D"],
        ["cross", "leaves"],
        ...this.endKeys(),
      ]);
    }
    this.plot.setSeries(series, this.run.detail.round);
  }

  endKeys() {
    return [
      ...(this.above ? [["up", "goes on above"]] : []),
      ...(this.run.detail.delivered ? [["diamond", "under the delivered model"]] : []),
    ];
  }

  draw(context, plot) {
    const { drawn: series } = this.run;
    if (!series || !this.columns) return;
    this.drawPrecision(context, plot);
    this.drawReceived(context, plot);
    if (this.few()) this.drawColoured(context, plot);
    else this.drawMany(context, plot);
    this.drawEvents(context, plot);
    this.drawEnds(context, plot);
    if (this.above) this.drawAbove(context, plot);
  }

  // Where a line leaves the chart at the top, and where it comes back, a mark says so.
  drawAbove(context, plot) {
    const [, top] = plot.range;
    const [from, to] = windowOf(plot.first, plot.domain);
    const { x: across, middle } = plot.scales();
    this.columns.forEach((column, index) => {
      context.fillStyle = this.few() ? agentLook(index).colour : colours().faint;
      let over = false;
      for (let i = from; i < to; i += 1) {
        if (column.high[i] !== column.high[i]) continue;
        const now = column.high[i] > top;
        if (now !== over) {
          const x = across(middle(i));
          context.beginPath();
          context.moveTo(x - 4, plot.area.top + 7);
          context.lineTo(x + 4, plot.area.top + 7);
          context.lineTo(x, plot.area.top);
          context.fill();
        }
        over = now;
      }
    });
  }

  // The model each agent received, where it decides on another one.
  drawReceived(context, plot) {
    const scales = plot.scales();
    this.received.forEach((column, index) => {
      const path = newPath(context);
      trace(path, scales, column);
      context.strokeStyle = this.few() ? agentLook(index).colour : colours().faint;
      context.globalAlpha = this.few() ? 0.55 : 0.25;
      context.lineWidth = 0.8;
      context.stroke(path);
    });
    context.globalAlpha = 1;
  }

  drawEnds(context, plot) {
    if (!reaches(this.run, this.run.drawn.count - 1)) return;
    const x = plot.x(this.run.detail.round);
    this.delivered.forEach((value, index) => {
      if (value !== value) return;
      const last = lastKnown(this.columns[index]);
      const from =
        this.few() && last >= 0
          ? [plot.x(plot.middle(last)), plot.y(this.columns[index].low[last])]
          : null;
      const colour = this.few() ? agentLook(index).colour : colours().faint;
      drawDelivered(context, { from, at: [x, plot.y(value)], colour, size: this.few() ? 5 : 3 });
    });
  }

  drawPrecision(context, plot) {
    const { near, faint } = colours();
    const known = this.agents.map((agent) => agent.epsilon).filter((epsilon) => epsilon !== null);
    const unique = this.margin ? [0] : [...new Set(known)].sort((a, b) => a - b);
    if (!unique.length) return;
    const { left, right, bottom } = plot.area;
    const highest = plot.y(unique[unique.length - 1]);
    const lowest = plot.y(unique[0]);
    context.fillStyle = near;
    context.globalAlpha = 0.09;
    context.fillRect(left, highest, right - left, bottom - highest);
    context.globalAlpha = 1;
    context.strokeStyle = faint;
    context.setLineDash([6, 4]);
    context.lineWidth = 1.2;
    for (const y of unique.length <= 4
      ? unique.map((epsilon) => plot.y(epsilon))
      : [highest, lowest]) {
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(right, y);
      context.stroke();
    }
    context.setLineDash([]);
    context.fillStyle = faint;
    context.textAlign = "left";
    context.textBaseline = "bottom";
    const text = this.margin
      ? "ε"
      : unique.length === 1
        ? `ε = ${short(unique[0])}`
        : `ε from ${short(unique[0])} to ${short(unique[unique.length - 1])}`;
    context.fillText(text, left + 6, highest - 3);
  }

  // The first bucket in which an agent has left; after that the loss is no longer the one it
  // decides on.
  gone(index) {
    const at = this.run.drawn.states[index].indexOf(this.run.codes.left);
    return at < 0 ? this.run.drawn.count : at;
  }

  // The first bucket in which it takes part: before that there is nobody to decide.
  came(index) {
    const { states, count } = this.run.drawn;
    const { absent } = this.run.codes;
    const at = states[index].findIndex((state) => state !== absent);
    return at < 0 ? count : at;
  }

  drawColoured(context, plot) {
    const scales = plot.scales();
    this.columns.forEach((column, index) => {
      const { colour, dash } = agentLook(index);
      const [came, gone] = [this.came(index), this.gone(index)];
      const path = newPath(context);
      trace(path, scales, column, came, Math.min(gone + 1, column.low.length));
      context.strokeStyle = colour;
      context.lineWidth = 1.8;
      context.setLineDash(dash);
      context.stroke(path);
      if (gone < this.run.drawn.count || came > 0) {
        const after = newPath(context);
        trace(after, scales, column, 0, Math.min(came + 1, column.low.length));
        trace(after, scales, column, gone);
        context.globalAlpha = 0.4;
        context.lineWidth = 1.2;
        context.setLineDash([2, 3]);
        context.stroke(after);
        context.globalAlpha = 1;
      }
      context.setLineDash([]);
    });
  }

  drawMany(context, plot) {
    const { near, faint, left } = colours();
    const [inside, waiting, outside] = [newPath(context), newPath(context), newPath(context)];
    const { states, count } = this.run.drawn;
    const { codes } = this.run;
    const pathOf = (state) =>
      state === codes.left ? outside : state === codes.near ? waiting : inside;
    const { x: across, y: up, middle } = plot.scales();
    this.columns.forEach((column, index) => {
      const [own, came] = [states[index], this.came(index)];
      let last = -1;
      let pen = null;
      for (let i = 0; i < count; i += 1) {
        const low = column.low[i];
        if (low !== low) continue;
        const path = i < came ? outside : pathOf(own[i]);
        const x = across(middle(i));
        if (pen !== path && last >= 0) path.moveTo(across(middle(last)), up(column.low[last]));
        if (last >= 0) path.lineTo(x, up(column.high[i]));
        else path.moveTo(x, up(column.high[i]));
        if (column.high[i] !== low) path.lineTo(x, up(low));
        [last, pen] = [i, path];
      }
    });
    const many = this.columns.length > 60;
    const looks = [
      [outside, left, 0.7, 1],
      [inside, faint, many ? 0.28 : 0.5, 1],
      [waiting, near, many ? 0.55 : 0.8, 1.3],
    ];
    for (const [path, colour, alpha, width] of looks) {
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.stroke(path);
    }
    context.globalAlpha = 1;
  }

  // Where an agent's line is at a place of the series; at its target loss where its loss is not
  // known.
  valueAt(agent, place) {
    const column = this.columns[agent];
    const last = lastKnown(column, place + 1);
    if (last >= 0) return column.low[last];
    const epsilon = this.margin ? 0 : this.agents[agent].epsilon;
    return epsilon === null ? NaN : epsilon;
  }

  drawEvents(context, plot) {
    const { ink, card: paper } = colours();
    const size = this.few() ? 5 : 3.2;
    this.agents.forEach((agent, index) => {
      if (agent.first_in_d && this.agents.length <= 200) {
        const value = this.valueAt(index, plot.placeOf(agent.first_in_d));
        if (value === value) {
          context.beginPath();
          context.arc(plot.x(agent.first_in_d), plot.y(value), size - 1, 0, 7);
          context.fillStyle = paper;
          context.fill();
          context.strokeStyle = this.few() ? agentLook(index).colour : colours().near;
          context.lineWidth = 1.6;
          context.stroke();
        }
      }
    });
    for (const { agent, round } of this.run.detail.left || []) {
      if (agent >= this.agents.length) continue;
      const epsilon = this.margin ? 0 : this.agents[agent].epsilon;
      const value = epsilon === null ? plot.range[0] : epsilon;
      const [x, y] = [plot.x(round), plot.y(value)];
      // On a log scale nothing is as low as a margin of zero; the mark stands at the foot then.
      drawCross(context, x, Math.min(y, plot.area.bottom - size), { size, ink, paper });
    }
  }

  nearest(index, y) {
    if (index < 0 || y === null || !this.columns) return this.highlight.hover(null);
    let best = null;
    let distance = 24;
    const { y: up } = this.plot.scales();
    this.columns.forEach((column, agent) => {
      const away = Math.abs(up(this.valueAt(agent, index)) - y);
      if (away < distance) {
        distance = away;
        best = agent;
      }
    });
    return this.highlight.hover(best);
  }

  marked() {
    const shown = this.highlight.shown();
    return shown !== null && this.columns !== undefined && this.columns[shown] !== undefined;
  }

  mark(context, plot) {
    const shown = this.highlight.shown();
    const { ink, card: paper } = colours();
    const path = newPath(context);
    trace(path, plot.scales(), this.columns[shown]);
    context.save();
    context.beginPath();
    const { left, right, top, bottom } = plot.area;
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    context.strokeStyle = paper;
    context.lineWidth = 5;
    context.stroke(path);
    context.strokeStyle = this.few() ? agentLook(shown).colour : onPage(CHARTS.pointed);
    context.lineWidth = 2.6;
    context.stroke(path);
    context.restore();
    context.fillStyle = ink;
    context.textAlign = "right";
    context.textBaseline = "top";
    context.font = "600 12px system-ui, sans-serif";
    context.fillText(this.agents[shown].called, right - 6, top + 4);
  }

  // The losses of all agents at a place of the series; where one is not known exactly, its last
  // known one with the round it is of.
  values(index) {
    if (!this.columns) return [];
    const highlighted = this.highlight.shown();
    return this.columns.map((column, agent) => {
      const last = lastKnown(column, index + 1);
      const value = last >= 0 ? column.low[last] : NaN;
      const old = () => (last >= 0 && last < index ? ` (${this.plot.rounds(last)})` : "");
      return {
        name: this.agents[agent].called,
        value,
        get shown() {
          return number(value) + old();
        },
        look: this.few() ? agentLook(agent) : null,
        near: agent === highlighted,
      };
    });
  }

  lines() {
    const { first, bucket } = this.run.drawn;
    const line = (suffix, delivered) => (column, agent) => ({
      name: this.agents[agent].called + suffix,
      column,
      first,
      bucket,
      delivered: delivered ? this.delivered[agent] : NaN,
    });
    return [
      ...this.columns.map(line("", true)),
      ...this.received.map(line(", model it received", false)),
    ];
  }

  says(index) {
    const { drawn: series } = this.run;
    const shown = this.highlight.shown();
    const losses = this.agents
      .map((_, agent) => this.run.drawn.losses[agent].low[index] - this.base(agent))
      .filter((loss) => loss === loss);
    const parts = [this.plot.rounds(index)];
    if (shown !== null && series.losses[shown]) {
      const loss = series.losses[shown].low[index];
      const what = this.margin ? "margin" : "loss";
      parts.push(
        `${this.agents[shown].called}: ${what} ` +
          (loss === loss ? number(loss - this.base(shown)) : "not known in this round") +
          `, ${this.run.detail.states[series.states[shown][index]].text}`,
      );
      const received = series.received[shown] && series.received[shown].low[index];
      if (Number.isFinite(received))
        parts.push(`${number(received - this.base(shown))} at the model it received`);
    } else if (losses.length) {
      parts.push(
        `${several(losses.length, ...(this.margin ? ["margin"] : ["loss", "losses"]))} known, ` +
          `from ${number(Math.min(...losses))} to ${number(Math.max(...losses))}`,
      );
    } else {
      parts.push("no exact loss in this round");
    }
    const ends = (shown !== null ? [this.delivered[shown]] : this.delivered).filter(
      Number.isFinite,
    );
    if (reaches(this.run, index) && ends.length) {
      parts.push(
        ends.length === 1
          ? `delivered ${number(ends[0])}`
          : `delivered from ${number(Math.min(...ends))} to ${number(Math.max(...ends))}`,
      );
    }
    return parts.join(" · ");
  }
}
