// Several runs over each other, aligned by round.

import { Cursor, Plot, extent, trace } from "./axes.js";
import { endOf, swatch } from "./charts.js";
import { drawDelivered, lastKnown } from "./delivered.js";
import { colours, onTheme, runLooks } from "./theme.js";
import { NONE, el, number, percent, short, verdict } from "./words.js";

const KINDS = [
  { title: "Mean over all agents", track: ["accuracy_mean", "loss_mean"] },
  { title: "The worst agent", track: ["accuracy_worst", "loss_worst"] },
  { title: "Agents still in", track: ["still_in", "still_in"] },
];

function lastOf(column, to = column.low.length) {
  const last = lastKnown(column, to);
  return last >= 0 ? column.low[last] : NaN;
}

export class CompareView {
  constructor(runs) {
    this.runs = runs;
    this.cursor = new Cursor();
    this.heading = el("h1", { tabindex: "-1" }, "Comparing runs");
    this.legend = el("div", { class: "legend sticky" });
    this.plots = KINDS.map((kind, index) => this.chart(kind, index));
    this.body = el("tbody");
    const heads = ["run", "left", "verdict", "content", "rounds", "mean loss", "worst loss", "mean accuracy", "worst accuracy", "population"];
    this.table = el("table", {}, el("caption", { class: "hidden" }, "The runs: what they delivered, or how far they have come"),
      el("thead", {}, el("tr", {}, ...heads.map((head, i) => el("th", { scope: "col", class: i === 0 || i === 2 ? "text" : "" }, head)))), this.body);
    this.element = el("article", {}, el("div", { class: "title" }, this.heading), el("p", { class: "words" }, "The same round is at the same place in every chart."), this.legend,
      ...this.plots.map((one) => one.section),
      el("section", { class: "card", "aria-label": "Results" }, el("div", { class: "head" }, el("h3", {}, "Results")), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of results" }, this.table)));
    this.stop = onTheme(() => this.update());
  }

  remove() {
    this.stop();
    this.plots.forEach(({ plot }) => plot.remove());
  }

  get ready() {
    return this.runs.filter((run) => run.detail && run.series);
  }

  chart(kind, place) {
    const plot = new Plot({
      label: `Round, in the chart: ${kind.title}`,
      height: place === 2 ? 190 : 270,
      cursor: this.cursor,
      draws: (context, own) => this.draw(context, own, kind),
      says: () => this.says(kind),
    });
    const heading = el("h3", {}, kind.title);
    const section = el("section", { class: "card", "aria-label": kind.title }, el("div", { class: "head" }, heading), plot.box, plot.readout);
    return { plot, section, kind, heading };
  }

  // Accuracy where every run has it, else losses.
  track(run, kind) {
    return run.series.tracks[kind.track[this.accuracy ? 0 : 1]];
  }

  // A track's value under the delivered model; NaN for a run that is not over, or without that track.
  end(run, kind) {
    const { delivered } = run.detail;
    const value = delivered && delivered[kind.track[this.accuracy ? 0 : 1]];
    return Number.isFinite(value) ? value : NaN;
  }

  update() {
    const { ready } = this;
    if (!ready.length) return;
    document.title = `Comparing ${ready.length} runs · fedstay`;
    this.looks = new Map(runLooks(ready.map((run) => run.detail.listing)).map((look, i) => [ready[i], look]));
    this.accuracy = ready.every((run) => extent([run.series.tracks.accuracy_mean]) !== null);
    const end = Math.max(...ready.map(endOf));
    // The cursor moves along the run with the most rounds.
    const longest = ready.reduce((a, b) => (b.detail.round > a.detail.round ? b : a));
    for (const { plot, kind, heading } of this.plots) {
      const ends = ready.map((run) => this.end(run, kind));
      const known = extent([...ready.map((run) => this.track(run, kind)), { low: ends, high: ends }]) || [0, 1];
      const counts = kind.track[0] === "still_in";
      plot.range = counts || !this.accuracy ? [0, known[1] * 1.06 || 1] : [0, 1];
      plot.format = counts ? (value) => (Number.isInteger(value) ? String(value) : "") : this.accuracy ? (value) => `${Math.round(100 * value)}%` : short;
      heading.textContent = counts ? kind.title : `${kind.title}: ${this.accuracy ? "accuracy" : "loss"}${this.partly(ready)}`;
      plot.setSeries(longest.series, end);
    }
    this.updateLegend(ready);
    this.updateTable(ready);
  }

  // Whose losses are known only where they are reported.
  partly(ready) {
    const some = this.accuracy ? [] : ready.filter((run) => !run.series.measured);
    if (!some.length) return "";
    return some.length === ready.length ? ", over those who reported" : `, of ${some.map((run) => this.name(run)).join(", ")} over those who reported`;
  }

  name(run) {
    const { listing } = run.detail;
    const same = this.ready.filter((other) => other.detail.listing.rule === listing.rule).length > 1;
    return same || !listing.rule ? listing.name : listing.rule;
  }

  updateLegend(ready) {
    const wanted = ready.map((run) => this.name(run) + this.looks.get(run).colour).join("\n");
    if (this.legend.dataset.wanted === wanted) return;
    this.legend.dataset.wanted = wanted;
    this.legend.replaceChildren(...ready.map((run) => el("span", { class: "key" }, this.sign(run), this.name(run))), el("span", { class: "key" }, swatch("cross"), "an agent leaves"), el("span", { class: "key" }, swatch("diamond"), "the delivered model"));
  }

  sign(run) {
    const look = this.looks.get(run);
    const sign = swatch("dash");
    sign.style.borderTopColor = look.colour;
    sign.style.borderTopStyle = look.dash.length ? (look.dash[0] < 4 ? "dotted" : "dashed") : "solid";
    return sign;
  }

  // A run has its own buckets, so it is traced with its own places.
  draw(context, plot, kind) {
    for (const run of this.ready) {
      const column = this.track(run, kind);
      const { first, bucket } = run.series;
      const own = { x: (round) => plot.x(round), y: (value) => plot.y(value), middle: (index) => first[index] + (bucket - 1) / 2 };
      const path = new Path2D();
      trace(path, own, column);
      const look = this.looks.get(run);
      context.strokeStyle = look.colour;
      context.lineWidth = 2.2;
      context.setLineDash(look.dash);
      context.stroke(path);
      context.setLineDash([]);
      this.crosses(context, plot, run, column, look);
      const end = this.end(run, kind);
      if (end !== end) continue;
      const last = lastKnown(column);
      const from = last >= 0 ? [plot.x(own.middle(last)), plot.y(column.low[last])] : null;
      drawDelivered(context, { from, at: [plot.x(run.detail.round), plot.y(end)], colour: look.colour });
    }
  }

  at(run, column, round) {
    const { first } = run.series;
    let to = 0;
    while (to < first.length && first[to] <= round) to += 1;
    return lastOf(column, to);
  }

  crosses(context, plot, run, column, look) {
    const rounds = [...new Set((run.detail.left || []).map((left) => left.round))].slice(0, 60);
    for (const round of rounds) {
      const value = this.at(run, column, round);
      if (value !== value) continue;
      const [x, y] = [plot.x(round), plot.y(value)];
      for (const [colour, width] of [[colours().card, 4], [look.colour, 2]]) {
        context.strokeStyle = colour;
        context.lineWidth = width;
        context.beginPath();
        context.moveTo(x - 4, y - 4);
        context.lineTo(x + 4, y + 4);
        context.moveTo(x + 4, y - 4);
        context.lineTo(x - 4, y + 4);
        context.stroke();
      }
    }
  }

  says(kind) {
    const round = this.cursor.round;
    const counts = kind.track[0] === "still_in";
    const shown = (value) => (value !== value ? NONE : counts ? String(value) : this.accuracy ? percent(value) : number(value));
    const each = this.ready.map((run) => {
      const [name, end, there] = [this.name(run), this.end(run, kind), shown(this.at(run, this.track(run, kind), round))];
      if (round < run.detail.round || run.detail.status !== "finished") return `${name} ${there}`;
      // Where a run has ended, what it delivered is what counts.
      return end === end ? `${name}: ended in ${run.detail.round}, delivered ${shown(end)}` : `${name}: ended in ${run.detail.round} with ${there}`;
    });
    return [`round ${round}`, ...each].join(" · ");
  }

  updateTable(ready) {
    const rows = ready.map((run) => {
      const { detail, series } = run;
      const { delivered } = detail;
      // For a run that is over what it delivered, for another how far it has come.
      const value = (name) => (delivered ? delivered[name] : lastOf(series.tracks[name]));
      const left = delivered ? delivered.left : detail.counts ? detail.counts.left : 0;
      const { head, tone } = verdict(detail);
      return [
        [this.sign(run), el("a", { href: `#run=${run.id}` }, this.name(run))],
        [`${left} of ${detail.agents_all || 0}`],
        [el("span", { class: "how", "data-tone": tone }, head)],
        [delivered ? `${delivered.content} of ${delivered.agents}` : NONE],
        [String(detail.round || 0)],
        [number(value("loss_mean"))],
        [number(value("loss_worst"))],
        [percent(value("accuracy_mean"))],
        [percent(value("accuracy_worst"))],
        [percent(value("accuracy_population"))],
      ];
    });
    const focus = this.body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.body.replaceChildren(...rows.map((cells) => el("tr", {}, ...cells.map((cell, i) => el(i === 0 ? "th" : "td", { scope: i === 0 ? "row" : null, class: i === 0 || i === 2 ? "text" : "" }, ...cell)))));
    if (focus) this.body.querySelector(`a[href="${CSS.escape(focus)}"]`)?.focus();
  }
}
