// Charts of a few named tracks: how good the model is, how many agents it has, the server's steps.

import { Plot, extent, trace, windowOf } from "./axes.js";
import { card, keys } from "./card.js";
import { CHARTS } from "./charts.js";
import { trackOf } from "./data.js";
import { drawDelivered, lastKnown, reaches } from "./delivered.js";
import { Chooser, LOSS, has, isShare, part, shownAs } from "./measures.js";
import { newPath } from "./svg.js";
import { Look, colours, onPage } from "./theme.js";
import { el, number } from "./words.js";

// A range with a little room, for a part of the rounds.
export function padded([low, high], share) {
  const room = 0.06 * (high - low || Math.abs(high) || 1);
  return share ? [Math.max(0, low - room), Math.min(1, high + room)] : [low - room, high + room];
}

export function axisPercent(value) {
  return `${Number((100 * value).toFixed(1))}%`;
}

class Tracks {
  constructor(run, cursor, { title, about, label, height, extra }) {
    this.run = run;
    this.plot = new Plot({
      label,
      height,
      cursor,
      draws: (context, plot) => this.draw(context, plot),
      says: (index) => this.says(index),
      values: (index) => this.values(index),
    });
    const made = card({
      title,
      about,
      plot: this.plot,
      extra,
      of: () => run.detail.listing.name,
      lines: () => this.table(),
    });
    Object.assign(this, {
      section: made.section,
      legend: made.legend,
      heading: made.heading,
      about: made.about,
    });
    this.empty = el("p", { class: "nothing", hidden: true });
    this.plot.box.append(this.empty);
    this.lines = [];
  }

  // A curve as the description has it, with its numbers.
  line({ key, name, colour, dash }, column, delivered) {
    return { name: key, text: name, column, look: new Look(colour, dash), delivered };
  }

  // A value as text.
  show(value) {
    return number(value);
  }

  // The last known value at or before a place of the series.
  near(column, index) {
    const last = lastKnown(column, index + 1);
    return last >= 0 ? column.low[last] : NaN;
  }

  values(index) {
    return this.lines.map(({ text, column, look }) => {
      const value = this.near(column, index);
      return { name: text, value, shown: this.show(value), look };
    });
  }

  table() {
    const { first, bucket } = this.run.drawn;
    return this.lines.map(({ text, column, delivered }) => ({
      name: text,
      column,
      first,
      bucket,
      delivered: delivered === undefined ? NaN : delivered,
    }));
  }

  // From the last round that was measured to what is delivered.
  end(context, plot, { column, look, delivered }) {
    if (!reaches(this.run, this.run.drawn.count - 1)) return;
    const last = lastKnown(column);
    const from = last >= 0 ? [plot.x(plot.middle(last)), plot.y(column.low[last])] : null;
    drawDelivered(context, {
      from,
      at: [plot.x(this.run.detail.round), plot.y(delivered)],
      colour: look.colour,
    });
  }

  draw(context, plot) {
    const scales = plot.scales();
    for (const { column, look } of this.lines) {
      const path = newPath(context);
      trace(path, scales, column, 0, column.low.length, this.steps);
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

// What a curve is called where it shows a measure, or the loss.
function calledOf({ key, name }, measure) {
  if (key === "mean") return `${name} ${measure.label}`;
  return key === "worst" && measure === LOSS ? `${name}’s ${measure.label}` : name;
}

export class Quality extends Tracks {
  constructor(run, cursor) {
    const what = new Chooser(() => this.update());
    super(run, cursor, {
      title: "How good the model is for everybody",
      about: "",
      label: "Round, in the chart of what is measured",
      height: 250,
      extra: [what.element],
    });
    this.what = what;
    this.measure = LOSS;
  }

  update() {
    const { drawn: series, detail } = this.run;
    if (!series) return;
    const offered = detail.measures.filter((measure) => has({ series, detail }, measure));
    this.measure = this.what.offer(offered);
    const { measure } = this;
    const share = isShare(measure);
    const { delivered } = detail;
    this.lines = CHARTS.measured
      .map((curve) => {
        const key = part(measure, curve.key);
        const name = calledOf(curve, measure);
        const end = delivered ? delivered[key] : null;
        const known = Number.isFinite(end) ? end : null;
        return this.line({ ...curve, key, name }, trackOf(series, key), known);
      })
      .filter((line) => line.delivered !== null || extent([line.column]) !== null);
    const about =
      measure !== LOSS || series.measured
        ? "Over all agents, including those that left, in the rounds in which it was measured."
        : "Over those who reported: nobody measures agents that have left.";
    if (this.about.textContent !== about) this.about.textContent = about;
    this.over = this.lines.some((line) => line.delivered !== null);
    const window = windowOf(series.first, this.plot.domain);
    const ends = reaches(this.run, window[1] - 1)
      ? this.lines.map((line) => line.delivered).filter((value) => value !== null)
      : [];
    const seen = [
      extent(
        this.lines.map((line) => line.column),
        window,
      ),
      extent([{ low: ends, high: ends }]),
    ].filter(Boolean);
    const known = seen.length
      ? [Math.min(...seen.map(([low]) => low)), Math.max(...seen.map(([, high]) => high))]
      : null;
    this.plot.range =
      known && this.plot.cursor.range
        ? padded(known, share)
        : share
          ? [0, 1]
          : known
            ? [Math.min(0, known[0]), known[1] * 1.06 || 1]
            : [0, 1];
    this.plot.format = share ? axisPercent : null;
    this.empty.textContent = detail.rounds
      ? "Nothing is measured over all agents in this run, not even a loss."
      : "Waiting for the first round …";
    this.empty.hidden = known !== null;
    const marks = detail.left && detail.left.length ? [["down", "an agent leaves"]] : [];
    if (this.over) marks.push(["diamond", "the delivered model"]);
    keys(this.legend, this.plot, [
      ...this.lines.map((line) => ["dash", line.text, line.look]),
      ...marks,
    ]);
    this.plot.setSeries(series, this.run.detail.round);
  }

  draw(context, plot) {
    this.departures(context, plot);
    super.draw(context, plot);
    for (const line of this.lines) if (line.delivered !== null) this.end(context, plot, line);
  }

  show(value) {
    return shownAs(this.measure)(value);
  }

  says(index) {
    const after =
      this.over && reaches(this.run, index)
        ? [
            `delivered: ${this.lines
              .filter((line) => line.delivered !== null)
              .map((line) => `${line.text} ${this.show(line.delivered)}`)
              .join(", ")}`,
          ]
        : [];
    return [
      this.plot.rounds(index),
      ...this.lines.map((line) => `${line.text} ${this.show(this.near(line.column, index))}`),
      ...after,
    ].join(" · ");
  }
}

// How many agents are still in, and how many the model satisfies: numbers that hold until the next
// is known.
export class Kept extends Tracks {
  constructor(run, cursor) {
    super(run, cursor, {
      title: "How many are still in, and how many are content",
      about:
        "Content: an agent whose loss at the server’s model is at most its ε, whether it " +
        "is still in or has left.",
      label: "Round, in the chart of agents",
      height: 180,
    });
    this.steps = true;
  }

  update() {
    const { drawn: series, detail } = this.run;
    if (!series) return;
    const { delivered } = detail;
    this.lines = CHARTS.members
      .map((curve) => {
        const end = curve.key === "content" && delivered ? delivered.content : null;
        return this.line(curve, series.tracks[curve.key], end);
      })
      .filter((line) => line.delivered !== null || extent([line.column]) !== null);
    const all = detail.agents_all || 1;
    this.plot.range = [0, all * 1.06];
    this.plot.format = (value) => (Number.isInteger(value) ? String(value) : "");
    this.empty.hidden = this.lines.length > 0;
    this.empty.textContent = "Waiting for the first round …";
    const end = this.lines.some((line) => line.delivered !== null)
      ? [["diamond", "content with the delivered model"]]
      : [];
    keys(this.legend, this.plot, [
      ...this.lines.map((line) => ["dash", line.text, line.look]),
      ...end,
    ]);
    this.plot.setSeries(series, this.run.detail.round);
  }

  draw(context, plot) {
    super.draw(context, plot);
    for (const line of this.lines) if (line.delivered !== null) this.end(context, plot, line);
  }

  show(value) {
    return Number.isFinite(value) ? `${value} of ${this.run.detail.agents_all}` : "not known";
  }

  says(index) {
    const over =
      reaches(this.run, index) && this.run.detail.delivered
        ? [`content with the delivered model: ${this.show(this.run.detail.delivered.content)}`]
        : [];
    return [
      this.plot.rounds(index),
      ...this.lines.map((line) => `${line.text} ${this.show(this.near(line.column, index))}`),
      ...over,
    ].join(" · ");
  }
}

// The paper's case of a round, by its number.
const caseOf = (number) => CHARTS.cases.find((one) => one.number === number);

export class Steps extends Tracks {
  constructor(run, cursor) {
    super(run, cursor, {
      title: "The server’s step",
      about:
        "Its length and the step size η, on a log scale; below them the paper’s case, " +
        "for rules that have one.",
      label: "Round, in the chart of steps",
      height: 210,
    });
    this.plot.log = true;
  }

  update() {
    const { drawn: series } = this.run;
    if (!series) return;
    const positive = (column) => {
      const keep = (values) => values.map((value) => (value > 0 ? value : NaN));
      return { low: keep(column.low), high: keep(column.high) };
    };
    this.lines = CHARTS.steps.map((curve) => this.line(curve, positive(series.tracks[curve.key])));
    const known = extent(
      this.lines.map((line) => line.column),
      windowOf(series.first, this.plot.domain),
    );
    this.plot.range = known ? [known[0] / 3, known[1] * 1.6] : [0.01, 1];
    this.empty.hidden = known !== null;
    this.empty.textContent = this.run.detail.sketch
      ? "A sweep’s store does not keep the steps."
      : "Waiting for the first round …";
    const seen = new Set([...series.tracks.case.low, ...series.tracks.case.high]);
    this.cases = CHARTS.cases.filter(({ number }) => seen.has(number));
    keys(this.legend, this.plot, [
      ...this.lines.map((line) => ["dash", line.text, line.look]),
      ...this.cases.map(({ number, name }) => [`case-${number}`, `case ${number}: ${name}`]),
    ]);
    this.plot.setSeries(series, this.run.detail.round);
  }

  draw(context, plot) {
    super.draw(context, plot);
    const { drawn: series } = this.run;
    const { bottom } = plot.area;
    const own = series.tracks.case.high;
    const { x: across } = plot.scales();
    for (let i = 0; i < series.count; i += 1) {
      const known = caseOf(own[i]);
      if (!known) continue;
      const from = across(series.first[i] - 0.5);
      const to = across(
        i + 1 < series.count ? series.first[i + 1] - 0.5 : series.first[i] + series.bucket - 0.5,
      );
      context.fillStyle = onPage(known.colour);
      const width = Math.max(to - from, 0.75) + 0.25;
      context.fillRect(from, bottom - known.height, width, known.height);
    }
  }

  says(index) {
    const { tracks } = this.run.drawn;
    const one = tracks.case.low[index];
    const parts = [
      this.plot.rounds(index),
      `step ${number(tracks.step_norm.low[index])}`,
      `η ${number(tracks.step_size.low[index])}`,
    ];
    const named = caseOf(one);
    if (one === one) parts.push(`case ${one}${named ? ` (${named.name})` : ""}`);
    return parts.join(" · ");
  }
}
