// The charts of one run: losses, the strip of states, accuracy, steps.

import { Plot, extent, roomFor, trace } from "./axes.js";
import { drawDelivered, lastKnown } from "./delivered.js";
import { agentLook, colours, onPage } from "./theme.js";
import { agentName, el, number, percent, several, short } from "./words.js";

// Up to here every agent has a colour of its own; with more, colour says what they are doing.
const COLOURED = 12;

const STATE_COLOURS = [null, "free", "near", "fault", "left"];
// The states by their numbers, in the order in which they are listed; the server has the words for them.
const LEGEND = [1, 2, 4, 3, 0];

export function swatch(kind) {
  return el("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
}

function card(title, about, plot, ...extra) {
  const legend = el("div", { class: "legend" });
  const head = el("div", { class: "head" }, el("h3", {}, title), ...extra);
  const section = el("section", { class: "card", "aria-label": title }, head, el("p", { class: "about" }, about), legend, plot.box, plot.readout);
  return { section, legend };
}

function keys(legend, entries) {
  const wanted = entries.map(([kind, text]) => `${kind}|${text}`).join("\n");
  if (legend.dataset.keys === wanted) return;
  legend.dataset.keys = wanted;
  legend.replaceChildren(...entries.map(([kind, text, look]) => {
    const sign = swatch(kind);
    if (look) {
      sign.style.borderTopColor = look.colour;
      sign.style.borderTopStyle = look.dash.length ? (look.dash[0] < 3 ? "dotted" : "dashed") : "solid";
    }
    return el("span", { class: "key" }, sign, text);
  }));
}

// The last round on the axis: the run's last if it is over, else a little more.
export function endOf(run) {
  const last = (run.detail && run.detail.round) || 1;
  return run.detail && run.detail.status === "running" ? Math.min(roomFor(last), Math.max(run.detail.listing.asked, last)) : last;
}

function choice(label, options, chosen, pick) {
  const group = el("div", { class: "choice", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const button = el("button", { type: "button", "aria-pressed": String(value === chosen) }, text);
    button.addEventListener("click", () => {
      for (const other of group.children) other.setAttribute("aria-pressed", String(other === button));
      pick(value);
    });
    group.append(button);
  }
  return group;
}

export class Losses {
  constructor(run, cursor, highlight) {
    this.run = run;
    this.highlight = highlight;
    this.margin = false;
    this.plot = new Plot({
      label: "Round, in the chart of losses",
      height: 340,
      cursor,
      draws: (context, plot) => this.draw(context, plot),
      marks: (context, plot, index) => this.mark(context, plot, index),
      says: (index) => this.says(index),
      hover: (index, y) => this.nearest(index, y),
    });
    const what = choice("What is drawn", [[false, "loss"], [true, "margin to ε"]], false, (margin) => {
      this.margin = margin;
      this.update();
    });
    const scale = choice("Scale of the losses", [[false, "linear"], [true, "log"]], false, (log) => {
      this.plot.log = log;
      this.update();
    });
    const made = card("Every agent’s loss against its target loss", "", this.plot, what, scale);
    this.section = made.section;
    this.about = made.section.querySelector(".about");
    this.legend = made.legend;
    this.empty = el("p", { class: "nothing" });
    this.plot.box.append(this.empty);
    highlight.listeners.add(() => this.plot.drawCursor());
  }

  get agents() {
    return this.run.detail.agents.slice(0, this.run.series ? this.run.series.agents : 0);
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
    return { low: shifted(column.low), high: column.high === column.low ? shifted(column.low) : shifted(column.high) };
  }

  // What is drawn, in a sentence that fits the run.
  say() {
    const { own, previews, delivered } = this.run.detail;
    const which = previews ? "Thick: the loss of what each agent was shown, which it compares with its ε. Thin: that of the server’s model, in the rounds in which it was measured; it is delivered at the end."
      : own ? "Thick: the loss of each agent’s own model after its local steps, which it compares with its ε. Thin: that of the model it received, in the rounds in which it was measured."
      : "At the model each agent received. An agent whose loss reaches its ε leaves; what the model then does to it is drawn faintly where it is measured.";
    const end = delivered ? " ◆ is the delivered model." : "";
    if (this.about.textContent !== which + end) this.about.textContent = which + end;
  }

  // The losses under the delivered model, as they are drawn; NaN where there is none.
  ends() {
    return this.agents.map((agent, index) => (agent.delivered && agent.delivered.loss !== null ? agent.delivered.loss - this.base(index) : NaN));
  }

  update() {
    const { series } = this.run;
    if (!series) return;
    this.say();
    this.columns = this.agents.map((_, index) => this.column(series.losses, index));
    this.received = series.received.map((_, index) => this.column(series.received, index));
    this.delivered = this.ends();
    const ends = { low: this.delivered, high: this.delivered };
    const whole = extent([...this.columns, ...this.received, ends]);
    const own = extent(this.columns.map((column, index) => this.before(column, this.gone(index) + 1)));
    // The losses of agents that left may go out of sight; the losses they left at may not.
    const most = extent([...this.received, ends]);
    const known = own && whole ? [Math.min(own[0], whole[0]), Math.max(Math.min(whole[1], own[1] * 1.25), most ? most[1] : -Infinity)] : whole;
    // The delivered model alone is not a curve: without a curve, say why there is none.
    const told = extent([...this.columns, ...this.received]) !== null;
    const detail = this.run.detail;
    const none = detail.sketch ? "A run from a sweep’s store, which keeps who left when and how good the model was in some rounds. For every round, with every agent’s loss: fedstay sweep extract --help"
      : detail.rounds ? "Nobody tells a loss in this run (privacy mode): the strip below shows who is about to leave." : "Waiting for the first round …";
    this.empty.textContent = told ? "" : none;
    this.empty.hidden = told;
    const epsilons = this.margin ? [0] : this.agents.map((agent) => agent.epsilon).filter((epsilon) => epsilon !== null);
    const [low, high] = known || [0, 1];
    const top = Math.max(high, ...epsilons.slice(0, 1000));
    if (this.plot.log) {
      const floor = Math.max(Math.min(low > 0 ? low : 1e-4, ...epsilons.filter((epsilon) => epsilon > 0)), top * 1e-6);
      this.plot.range = [floor / 1.3, top * 1.2];
    } else {
      const bottom = Math.min(0, low);
      this.plot.range = [bottom, top + 0.06 * (top - bottom || 1)];
    }
    if (this.few()) {
      keys(this.legend, [...this.agents.map((agent, index) => ["dash", agentName(agent), agentLook(index)]), ["ring", "enters D"], ["cross", "leaves"], ...this.endKeys()]);
    } else {
      keys(this.legend, [["line-free", detail.states[1].text], ["line-near", detail.states[2].text], ["line-left", "after it left"], ["ring", "first enters D"], ["cross", "leaves"], ...this.endKeys()]);
    }
    this.plot.setSeries(series, endOf(this.run));
  }

  endKeys() {
    return this.run.detail.delivered ? [["diamond", "under the delivered model"]] : [];
  }

  draw(context, plot) {
    const { series } = this.run;
    if (!series || !this.columns) return;
    this.drawPrecision(context, plot);
    this.drawReceived(context, plot);
    if (this.few()) this.drawColoured(context, plot);
    else this.drawMany(context, plot);
    this.drawEvents(context, plot);
    this.drawEnds(context, plot);
  }

  // The model each agent received, where it decides on another one.
  drawReceived(context, plot) {
    this.received.forEach((column, index) => {
      const path = new Path2D();
      trace(path, plot, column);
      context.strokeStyle = this.few() ? agentLook(index).colour : colours().faint;
      context.globalAlpha = this.few() ? 0.55 : 0.25;
      context.lineWidth = 0.8;
      context.stroke(path);
    });
    context.globalAlpha = 1;
  }

  drawEnds(context, plot) {
    const x = plot.x(this.run.detail.round);
    this.delivered.forEach((value, index) => {
      if (value !== value) return;
      const last = lastKnown(this.columns[index]);
      const from = this.few() && last >= 0 ? [plot.x(plot.middle(last)), plot.y(this.columns[index].low[last])] : null;
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
    for (const y of unique.length <= 4 ? unique.map((epsilon) => plot.y(epsilon)) : [highest, lowest]) {
      context.beginPath();
      context.moveTo(left, y);
      context.lineTo(right, y);
      context.stroke();
    }
    context.setLineDash([]);
    context.fillStyle = faint;
    context.textAlign = "left";
    context.textBaseline = "bottom";
    const text = this.margin ? "ε" : unique.length === 1 ? `ε = ${short(unique[0])}` : `ε from ${short(unique[0])} to ${short(unique[unique.length - 1])}`;
    context.fillText(text, left + 6, highest - 3);
  }

  // The first bucket in which an agent has left; after that the loss is no longer the one it decides on.
  gone(index) {
    const at = this.run.series.states[index].indexOf(4);
    return at < 0 ? this.run.series.count : at;
  }

  before(column, end) {
    return { low: column.low.subarray(0, end), high: column.high.subarray(0, end) };
  }

  drawColoured(context, plot) {
    this.columns.forEach((column, index) => {
      const { colour, dash } = agentLook(index);
      const gone = this.gone(index);
      const path = new Path2D();
      trace(path, plot, column, 0, Math.min(gone + 1, column.low.length));
      context.strokeStyle = colour;
      context.lineWidth = 1.8;
      context.setLineDash(dash);
      context.stroke(path);
      if (gone < this.run.series.count) {
        const after = new Path2D();
        trace(after, plot, column, gone);
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
    const paths = [new Path2D(), new Path2D(), new Path2D()];
    const { states, count } = this.run.series;
    this.columns.forEach((column, index) => {
      const own = states[index];
      let last = -1;
      let pen = null;
      for (let i = 0; i < count; i += 1) {
        const low = column.low[i];
        if (low !== low) continue;
        const path = paths[own[i] === 4 ? 2 : own[i] === 2 ? 1 : 0];
        const x = plot.x(plot.middle(i));
        if (pen !== path && last >= 0) path.moveTo(plot.x(plot.middle(last)), plot.y(column.low[last]));
        if (last >= 0) path.lineTo(x, plot.y(column.high[i]));
        else path.moveTo(x, plot.y(column.high[i]));
        if (column.high[i] !== low) path.lineTo(x, plot.y(low));
        [last, pen] = [i, path];
      }
    });
    const many = this.columns.length > 60;
    const looks = [[paths[2], left, 0.7, 1], [paths[0], faint, many ? 0.28 : 0.5, 1], [paths[1], near, many ? 0.55 : 0.8, 1.3]];
    for (const [path, colour, alpha, width] of looks) {
      context.strokeStyle = colour;
      context.globalAlpha = alpha;
      context.lineWidth = width;
      context.stroke(path);
    }
    context.globalAlpha = 1;
  }

  // Where an agent's line is in a round; at its target loss where its loss is not known.
  valueAt(index, round) {
    const { series } = this.run;
    const column = this.columns[index];
    let best = NaN;
    for (let i = 0; i < series.count && series.first[i] <= round; i += 1) {
      if (column.low[i] === column.low[i]) best = column.low[i];
    }
    const epsilon = this.margin ? 0 : this.agents[index].epsilon;
    return best === best ? best : epsilon === null ? NaN : epsilon;
  }

  drawEvents(context, plot) {
    const { ink, card: paper } = colours();
    const size = this.few() ? 5 : 3.2;
    this.agents.forEach((agent, index) => {
      if (agent.first_in_d && this.agents.length <= 200) {
        const value = this.valueAt(index, agent.first_in_d);
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
      const across = (reach) => {
        context.beginPath();
        context.moveTo(x - reach, y - reach);
        context.lineTo(x + reach, y + reach);
        context.moveTo(x + reach, y - reach);
        context.lineTo(x - reach, y + reach);
        context.stroke();
      };
      context.strokeStyle = paper;
      context.lineWidth = 4.5;
      across(size + 0.5);
      context.strokeStyle = ink;
      context.lineWidth = 2;
      across(size);
    }
  }

  nearest(index, y) {
    if (index < 0 || y === null || !this.columns) return this.highlight.hover(null);
    let best = null;
    let distance = 24;
    this.columns.forEach((column, agent) => {
      const away = Math.abs(this.plot.y(this.valueAt(agent, this.plot.first[index])) - y);
      if (away < distance) {
        distance = away;
        best = agent;
      }
    });
    return this.highlight.hover(best);
  }

  mark(context, plot) {
    const shown = this.highlight.shown();
    if (shown === null || !this.columns || !this.columns[shown]) return;
    const { ink, card: paper } = colours();
    const path = new Path2D();
    trace(path, plot, this.columns[shown]);
    context.save();
    context.beginPath();
    const { left, right, top, bottom } = plot.area;
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    context.strokeStyle = paper;
    context.lineWidth = 5;
    context.stroke(path);
    context.strokeStyle = this.few() ? agentLook(shown).colour : onPage("#d55e00");
    context.lineWidth = 2.6;
    context.stroke(path);
    context.restore();
    context.fillStyle = ink;
    context.textAlign = "right";
    context.textBaseline = "top";
    context.font = "600 12px system-ui, sans-serif";
    context.fillText(agentName(this.agents[shown]), right - 6, top + 4);
  }

  says(index) {
    const { series } = this.run;
    const shown = this.highlight.shown();
    const losses = this.agents.map((_, agent) => this.run.series.losses[agent].low[index]).filter((loss) => loss === loss);
    const parts = [this.plot.rounds(index)];
    if (shown !== null && series.losses[shown]) {
      const loss = series.losses[shown].low[index];
      parts.push(`${agentName(this.agents[shown])}: ${loss === loss ? `loss ${number(loss)}` : "loss not known"}, ${this.run.detail.states[series.states[shown][index]].text}`);
      const received = series.received[shown] && series.received[shown].low[index];
      if (Number.isFinite(received)) parts.push(`${number(received)} at the model it received`);
    } else if (losses.length) {
      parts.push(`${several(losses.length, "loss", "losses")} known, from ${number(Math.min(...losses))} to ${number(Math.max(...losses))}`);
    } else {
      parts.push("no exact loss in this round");
    }
    const ends = (shown !== null ? [this.agents[shown]] : this.agents).map((agent) => agent.delivered && agent.delivered.loss).filter(Number.isFinite);
    if (index === series.count - 1 && ends.length) {
      parts.push(ends.length === 1 ? `delivered ${number(ends[0])}` : `delivered from ${number(Math.min(...ends))} to ${number(Math.max(...ends))}`);
    }
    return parts.join(" · ");
  }
}

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
      says: (index) => this.says(index),
      hover: (index, y) => this.row(index, y),
    });
    this.plot.categories = true;
    this.plot.beside = (context, plot) => this.labels(context, plot);
    const made = card("Who is in, who is about to leave, who has left", "One row per agent. A rule that acts on its prediction holds agents that are about to leave; under averaging they leave.", this.plot);
    this.section = made.section;
    this.legend = made.legend;
    highlight.listeners.add(() => this.plot.drawCursor());
  }

  get rows() {
    return this.run.series ? this.run.series.agents : 0;
  }

  update() {
    const { states } = this.run.detail;
    keys(this.legend, LEGEND.map((state) => [states[state].name, states[state].text]));
    const rows = this.run.detail.agents_all || 0;
    this.plot.setHeight(Math.max(90, Math.min(340, Math.min(rows, 500) * 16)) + 36);
    this.plot.setSeries(this.run.series, endOf(this.run));
  }

  top(row) {
    const { top, bottom } = this.plot.area;
    return top + ((bottom - top) * row) / Math.max(this.rows, 1);
  }

  draw(context, plot) {
    const { series } = this.run;
    if (!series || !series.count) return;
    const palette = colours();
    const gap = this.rows <= 40 ? 1 : 0;
    const hatch = new Path2D();
    series.states.forEach((own, row) => {
      const [y, next] = [this.top(row), this.top(row + 1)];
      for (let i = 0; i < series.count;) {
        let end = i + 1;
        while (end < series.count && own[end] === own[i]) end += 1;
        const colour = STATE_COLOURS[own[i]];
        if (colour) {
          const from = plot.x(series.first[i] - 0.5);
          const to = plot.x(end < series.count ? series.first[end] - 0.5 : series.first[end - 1] + series.bucket - 0.5);
          context.fillStyle = palette[colour];
          // A single fault in a long run must still be seen.
          context.fillRect(from, y, Math.max(to - from, own[i] === 3 ? 2 : 0.75), next - y - gap);
          if (own[i] === 4) hatch.rect(from, y, to - from, next - y - gap);
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
    if (!this.run.series) return;
    const height = this.top(1) - this.top(0);
    const every = Math.max(1, Math.ceil(14 / Math.max(height, 0.1)));
    context.fillStyle = colours().faint;
    context.textAlign = "right";
    context.textBaseline = "middle";
    this.run.detail.agents.slice(0, this.rows).forEach((agent, row) => {
      if (row % every === 0) context.fillText((agent.name || String(agent.id)).slice(0, 7), plot.area.left - 8, this.top(row) + height / 2);
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
    if (shown === null || shown >= this.rows) return;
    context.strokeStyle = colours().ink;
    context.lineWidth = 1.5;
    const { left, right } = plot.area;
    context.strokeRect(left, this.top(shown) - 0.5, right - left, this.top(shown + 1) - this.top(shown));
  }

  says(index) {
    const { series } = this.run;
    const counts = [0, 0, 0, 0, 0];
    for (const own of series.states) counts[own[index]] += 1;
    const parts = [this.plot.rounds(index)];
    const shown = this.highlight.shown();
    if (shown !== null && series.states[shown]) parts.push(`${agentName(this.run.detail.agents[shown])}: ${this.run.detail.states[series.states[shown][index]].text}`);
    parts.push(LEGEND.filter((state) => counts[state]).map((state) => `${counts[state]} ${this.run.detail.states[state].text}`).join(", "));
    return parts.join(" · ");
  }
}

// A chart of a few named tracks.
class Tracks {
  constructor(run, cursor, { title, about, label, height }) {
    this.run = run;
    this.plot = new Plot({ label, height, cursor, draws: (context, plot) => this.draw(context, plot), says: (index) => this.says(index) });
    const made = card(title, about, this.plot);
    this.section = made.section;
    this.legend = made.legend;
    this.empty = el("p", { class: "nothing", hidden: true });
    this.plot.box.append(this.empty);
    this.lines = [];
  }

  draw(context, plot) {
    for (const { column, look } of this.lines) {
      const path = new Path2D();
      trace(path, plot, column);
      context.strokeStyle = look.colour;
      context.setLineDash(look.dash);
      context.lineWidth = 2.1;
      context.stroke(path);
      context.setLineDash([]);
    }
  }

  departures(context, plot) {
    const { ink } = colours();
    const { top, bottom } = plot.area;
    const { left } = this.run.detail;
    for (const { round } of left || []) {
      const x = plot.x(round);
      if (left.length <= 40) {
        context.strokeStyle = ink;
        context.globalAlpha = 0.25;
        context.lineWidth = 1;
        context.beginPath();
        context.moveTo(x, top);
        context.lineTo(x, bottom);
        context.stroke();
      }
      context.globalAlpha = left.length <= 40 ? 1 : 0.5;
      context.fillStyle = ink;
      context.beginPath();
      context.moveTo(x - 4, top);
      context.lineTo(x + 4, top);
      context.lineTo(x, top + 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }
}

export class Accuracy extends Tracks {
  constructor(run, cursor) {
    super(run, cursor, {
      title: "How good the model is for everybody",
      about: "",
      label: "Round, in the chart of accuracy",
      height: 250,
    });
    this.about = this.section.querySelector(".about");
  }

  update() {
    const { series, detail } = this.run;
    if (!series) return;
    const { tracks } = series;
    this.accuracy = extent([tracks.accuracy_mean]) !== null;
    const named = this.accuracy
      ? [["accuracy_mean", "mean accuracy", "#0072b2", []], ["accuracy_worst", "worst agent", "#d55e00", [6, 3]], ["accuracy_population", "population", "#009e73", [2, 2]]]
      : [["loss_mean", "mean loss", "#0072b2", []], ["loss_worst", "worst agent’s loss", "#d55e00", [6, 3]]];
    this.lines = named.filter(([name]) => extent([tracks[name]]) !== null)
      .map(([name, text, colour, dash]) => ({ name, text, column: tracks[name], look: { colour: onPage(colour), dash } }));
    const about = this.accuracy || series.measured ? "Over all agents, including those that left, in the rounds in which it was measured."
      : "Over those who reported: nobody measures agents that have left.";
    if (this.about.textContent !== about) this.about.textContent = about;
    const delivered = detail.delivered || {};
    for (const line of this.lines) line.delivered = Number.isFinite(delivered[line.name]) ? delivered[line.name] : null;
    this.over = this.lines.some((line) => line.delivered !== null);
    const ends = this.lines.map((line) => line.delivered).filter((value) => value !== null);
    const known = extent([...this.lines.map((line) => line.column), { low: ends, high: ends }]);
    this.plot.range = this.accuracy ? [0, 1] : known ? [Math.min(0, known[0]), known[1] * 1.06 || 1] : [0, 1];
    this.plot.format = this.accuracy ? (value) => `${Math.round(100 * value)}%` : null;
    this.empty.textContent = detail.rounds ? "Neither accuracy nor a loss over all agents is measured in this run." : "Waiting for the first round …";
    this.empty.hidden = known !== null;
    const marks = detail.left && detail.left.length ? [["down", "an agent leaves"]] : [];
    if (this.over) marks.push(["diamond", "the delivered model"]);
    keys(this.legend, [...this.lines.map((line) => ["dash", line.text, line.look]), ...marks]);
    this.plot.setSeries(series, endOf(this.run));
  }

  draw(context, plot) {
    this.departures(context, plot);
    super.draw(context, plot);
    for (const line of this.lines) if (line.delivered !== null) this.end(context, plot, line);
  }

  // From the last round that was measured to what is delivered.
  end(context, plot, { column, look, delivered }) {
    const last = lastKnown(column);
    const from = last >= 0 ? [plot.x(plot.middle(last)), plot.y(column.low[last])] : null;
    drawDelivered(context, { from, at: [plot.x(this.run.detail.round), plot.y(delivered)], colour: look.colour });
  }

  says(index) {
    const shown = (value) => (this.accuracy ? percent(value) : number(value));
    const after = this.over && index === this.run.series.count - 1
      ? [`delivered: ${this.lines.filter((line) => line.delivered !== null).map((line) => `${line.text} ${shown(line.delivered)}`).join(", ")}`] : [];
    const near = (column) => {
      for (let i = index; i >= 0; i -= 1) if (column.low[i] === column.low[i]) return column.low[i];
      return NaN;
    };
    return [this.plot.rounds(index), ...this.lines.map((line) => `${line.text} ${shown(near(line.column))}`), ...after].join(" · ");
  }
}

const CASES = { 1: ["#e69f00", "some are about to leave"], 2: ["#56b4e9", "nobody is about to leave"], 3: ["#cc79a7", "everybody is within reach"] };

export class Steps extends Tracks {
  constructor(run, cursor) {
    super(run, cursor, {
      title: "The server’s step",
      about: "Its length and the step size η, on a log scale; below them the paper’s case, for rules that have one.",
      label: "Round, in the chart of steps",
      height: 210,
    });
    this.plot.log = true;
  }

  update() {
    const { series } = this.run;
    if (!series) return;
    const positive = (column) => {
      const keep = (values) => values.map((value) => (value > 0 ? value : NaN));
      return { low: keep(column.low), high: keep(column.high) };
    };
    this.lines = [["step_norm", "length of the step", "#0072b2", []], ["step_size", "step size η", "#767676", [2, 2]]]
      .map(([name, text, colour, dash]) => ({ name, text, column: positive(series.tracks[name]), look: { colour: onPage(colour), dash } }));
    const known = extent(this.lines.map((line) => line.column));
    this.plot.range = known ? [known[0] / 3, known[1] * 1.6] : [0.01, 1];
    this.empty.hidden = known !== null;
    this.empty.textContent = this.run.detail.sketch ? "A sweep’s store does not keep the steps." : "Waiting for the first round …";
    this.cases = [...new Set([...series.tracks.case.low, ...series.tracks.case.high])].filter((one) => one in CASES).sort();
    keys(this.legend, [...this.lines.map((line) => ["dash", line.text, line.look]), ...this.cases.map((one) => [`case-${one}`, `case ${one}: ${CASES[one][1]}`])]);
    this.plot.setSeries(series, endOf(this.run));
  }

  draw(context, plot) {
    super.draw(context, plot);
    const { series } = this.run;
    const { bottom } = plot.area;
    const own = series.tracks.case.high;
    for (let i = 0; i < series.count; i += 1) {
      const known = CASES[own[i]];
      if (!known) continue;
      const from = plot.x(series.first[i] - 0.5);
      const to = plot.x(i + 1 < series.count ? series.first[i + 1] - 0.5 : series.first[i] + series.bucket - 0.5);
      context.fillStyle = onPage(known[0]);
      // Three heights, for readers who cannot tell the colours apart.
      const height = 4 + 3 * (own[i] === 1 ? 2 : own[i] === 3 ? 1 : 0);
      context.fillRect(from, bottom - height, Math.max(to - from, 0.75) + 0.25, height);
    }
  }

  says(index) {
    const { tracks } = this.run.series;
    const one = tracks.case.low[index];
    const parts = [this.plot.rounds(index), `step ${number(tracks.step_norm.low[index])}`, `η ${number(tracks.step_size.low[index])}`];
    if (one === one) parts.push(`case ${one}${CASES[one] ? ` (${CASES[one][1]})` : ""}`);
    return parts.join(" · ");
  }
}
