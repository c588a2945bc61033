// Several runs over each other, aligned by round: each its own line, or a line per group.

import { Plot, extent, trace, windowOf } from "./axes.js";
import { card, choice, drawCross, endOf } from "./card.js";
import { Cursor, zoomBar } from "./cursor.js";
import { trackOf } from "./data.js";
import { drawDelivered, lastKnown } from "./delivered.js";
import { Diff, differences } from "./diff.js";
import { linesOf } from "./lines.js";
import { lookOf } from "./looks.js";
import { Chooser, LOSS, has, isShare, part, shownAs, together } from "./measures.js";
import { RunTable, keysOf } from "./results.js";
import { lineSwatch, swatch } from "./sign.js";
import { linkTo, read, write } from "./state.js";
import { newPath } from "./svg.js";
import { colours } from "./theme.js";
import { axisPercent, padded } from "./tracks.js";
import { NONE, axisNumber, el, several, verdict } from "./words.js";

const KINDS = [
  { title: "Mean over all agents", part: "mean", height: 270 },
  { title: "The worst agent", part: "worst", height: 270 },
  { title: "Agents still in", track: "still_in", height: 190, counts: true },
  { title: "Agents content", track: "content", height: 190, counts: true },
];
// What the band of a group spans.
const SPANS = {
  range: "from the least to the most",
  sd: "one standard deviation either way",
};
// More lines are drawn thinner, and their legend scrolls.
const MANY = 16;

export class CompareView {
  constructor(runs) {
    this.runs = runs;
    this.cursor = new Cursor();
    this.cursor.zoomed = () => {
      this.draw();
      this.lookClosely();
    };
    // What was zoomed into is in the address, and asked for with the runs.
    for (const run of runs) {
      run.range = this.cursor.range;
      if (!run.range) run.part = null;
    }
    this.hidden = new Set((read("hide") || "").split(",").filter(Boolean).map(decodeURIComponent));
    this.solo = read("solo");
    this.near = null;
    this.heading = el("h1", { tabindex: "-1" }, "Comparing runs");
    this.words = el("p", { class: "words" }, "The same round is at the same place in every chart.");
    this.group = el("select", { id: "group" });
    this.group.addEventListener("change", () => {
      write("group", this.group.value || null);
      [this.hidden, this.solo] = [new Set(), null];
      this.noteShown();
      this.update();
    });
    this.band = choice(
      "The band of a group",
      [
        ["range", "least to most"],
        ["sd", "± standard deviation"],
      ],
      read("band") === "sd" ? "sd" : "range",
      (how) => {
        write("band", how === "sd" ? how : null);
        this.update();
      },
    );
    this.what = new Chooser(() => this.update());
    this.measure = LOSS;
    this.legend = el("div", {
      class: "legend lines",
      role: "group",
      "aria-label": "Lines: press to hide or show",
    });
    const controls = el(
      "div",
      { class: "controls compare" },
      el("label", {}, "group by ", this.group),
      this.band,
      this.what.element,
    );
    this.plots = KINDS.map((kind) => this.chart(kind));
    this.table = new RunTable({
      title: "Results",
      note: "What finished runs delivered; of others how far they have come.",
      lead: [{ head: "shown", cell: (row) => this.toggles(row) }],
    });
    this.diff = new Diff();
    this.element = el(
      "article",
      {},
      el("div", { class: "title" }, this.heading),
      this.words,
      controls,
      zoomBar(this.cursor),
      this.legend,
      ...this.plots.map((one) => one.section),
      this.table.section,
      this.diff.section,
    );
  }

  remove() {
    this.plots.forEach(({ plot }) => plot.remove());
  }

  // Of rounds that are zoomed into every single one is asked for, of a few runs at a time.
  async lookClosely() {
    const { range } = this.cursor;
    const rest = [...this.ready];
    let more = false;
    const one = async () => {
      while (rest.length && range === this.cursor.range)
        more =
          (await rest
            .shift()
            .look(range)
            .catch(() => false)) || more;
    };
    await Promise.all(Array.from({ length: 6 }, one));
    if (more && range === this.cursor.range) this.update();
  }

  get ready() {
    return this.runs.filter((run) => run.detail && run.series);
  }

  chart(kind) {
    const plot = new Plot({
      label: `Round, in the chart: ${kind.title}`,
      height: kind.height,
      cursor: this.cursor,
      draws: (context, own) => this.drawLines(context, own, kind),
      marks: (context, own) => this.mark(context, own, kind),
      marked: () => this.marked() !== undefined,
      says: () => this.says(kind),
      values: () => this.values(kind),
      hover: (index, y) => this.hover(kind, plot, index, y),
    });
    const made = card({
      title: kind.title,
      about: "",
      plot,
      of: () => "",
      lines: () => this.numbers(kind),
    });
    made.about.remove();
    made.legend.remove();
    return { plot, section: made.section, kind, heading: made.heading };
  }

  track(kind) {
    return kind.track || part(this.measure, kind.part);
  }

  shows(line) {
    return this.solo !== null ? line.key === this.solo : !this.hidden.has(line.key);
  }

  get visible() {
    return this.lines.filter((line) => this.shows(line));
  }

  noteShown() {
    // Names of groups may have commas in them.
    write("hide", [...this.hidden].map(encodeURIComponent).join(","));
    write("solo", this.solo);
  }

  hide(key) {
    if (this.solo !== null) {
      // Out of a solo: this one changes, and the others stay as they were.
      this.hidden = new Set(this.lines.map((line) => line.key).filter((one) => one !== this.solo));
      this.solo = null;
    }
    this.hidden[this.hidden.has(key) ? "delete" : "add"](key);
    this.noteShown();
    this.draw();
  }

  only(key) {
    this.solo = this.solo === key ? null : key;
    this.noteShown();
    this.draw();
  }

  update() {
    const { ready } = this;
    if (!ready.length) return;
    document.title = `Comparing ${several(ready.length, "run")} · fedstay`;
    this.heading.textContent = `Comparing ${several(this.runs.length, "run")}`;
    const known = together(ready.map((run) => run.detail.measures));
    this.measure = this.what.offer(known.filter((one) => ready.some((run) => has(run, one))));
    this.unmeasured = this.measure === LOSS ? [] : ready.filter((run) => !has(run, this.measure));
    this.updateGroups(ready);
    this.lines = linesOf(ready, read("group"), read("band") || "range");
    const dropped =
      this.solo !== null &&
      !this.lines.some((line) => line.key === this.solo) &&
      ready.length === this.runs.length;
    if (dropped) this.solo = null;
    this.diff.set(
      ready.map((run) => ({
        name: run.detail.listing.name,
        look: lookOf(run.id),
        settings: run.detail.settings,
      })),
    );
    this.draw();
  }

  // The keys by which the runs can be grouped: the rule, and every setting in which they differ.
  updateGroups(ready) {
    const settings = ready.map((run) => run.detail.settings || {});
    const keys = [
      "rule",
      "data",
      ...differences(settings).differ.filter((key) => key !== "rule.kind"),
    ];
    const options = [["", "nothing: one line per run"], ...keys.map((key) => [key, key])];
    const wanted = read("group");
    if (wanted && !keys.includes(wanted)) options.push([wanted, wanted]);
    const key = JSON.stringify(options);
    if (this.group.dataset.wanted !== key) {
      this.group.dataset.wanted = key;
      this.group.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
    }
    this.group.value = wanted || "";
    this.band.hidden = !wanted;
  }

  // Everything that depends on which lines and which rounds are shown.
  draw() {
    if (!this.lines) return;
    const { visible, ready } = this;
    this.cursor.end = Math.max(2, ...ready.map(endOf));
    this.cursor.tellZoom();
    // The cursor moves along the run with the most rounds.
    const longest = ready.reduce((a, b) => (b.detail.round > a.detail.round ? b : a));
    for (const { plot, kind, heading } of this.plots) {
      const track = this.track(kind);
      const known = this.extentOf(visible, track) || [0, 1];
      const share = isShare(this.measure) && !kind.counts;
      const whole = share ? [0, 1] : [0, Math.max(known[1], 0) * 1.06 || 1];
      plot.range = this.cursor.range && !kind.counts ? padded(known, share) : whole;
      plot.format = kind.counts
        ? (value) => (Number.isInteger(value) ? String(value) : "")
        : share
          ? axisPercent
          : axisNumber;
      const text = kind.counts
        ? kind.title
        : `${kind.title}: ${this.measure.label}${this.partly()}`;
      if (heading.textContent !== text) heading.textContent = text;
      plot.entries = [
        ...visible.map((line) => ({ kind: "dash", text: line.name, look: line.look })),
        { kind: "diamond", text: "delivered" },
      ];
      plot.setSeries(longest.drawn, longest.detail.round);
    }
    this.updateWords();
    this.updateLegend();
    this.updateTable();
  }

  extentOf(lines, track) {
    const { domain } = this.cursor;
    const all = lines
      .flatMap((line) => {
        const { first, column, band } = line.column(track);
        const window = windowOf(first, domain);
        const end = line.end <= domain[1] ? line.delivered(track) : NaN;
        return [
          extent(band ? [column, band] : [column], window),
          extent([{ low: [end], high: [end] }]),
        ];
      })
      .filter(Boolean);
    return all.length
      ? [Math.min(...all.map(([low]) => low)), Math.max(...all.map(([, high]) => high))]
      : null;
  }

  // Whose losses are known only where they are reported.
  partly() {
    const { ready } = this;
    const some = this.measure !== LOSS ? [] : ready.filter((run) => !run.series.measured);
    if (!some.length) return "";
    return some.length === ready.length
      ? ", over those who reported"
      : `, of ${some.length} runs over those who reported`;
  }

  updateWords() {
    const missing = this.unmeasured.map((run) => run.detail.listing.name);
    const without = missing.length
      ? ` Without ${this.measure.label}: ${missing.slice(0, 4).join(", ")}` +
        (missing.length > 4 ? ` and ${missing.length - 4} more` : "") +
        "; choose loss to see them."
      : "";
    const span = SPANS[read("band") === "sd" ? "sd" : "range"];
    const grouped = read("group")
      ? ` A line is the mean of a group, its band ${span}; ` +
        "a run that has ended stays at what it delivered."
      : "";
    const gone = this.missing
      ? ` ${several(this.missing, "run")} of this link ` +
        `${this.missing === 1 ? "is" : "are"} not in these folders.`
      : "";
    const text = `The same round is at the same place in every chart.${grouped}${without}${gone}`;
    if (this.words.textContent !== text) this.words.textContent = text;
  }

  updateLegend() {
    const all = this.lines;
    const wanted = JSON.stringify([
      all.map((line) => [line.key, line.name, line.look.light, this.shows(line)]),
      this.solo,
    ]);
    if (this.legend.dataset.wanted === wanted) return;
    this.legend.dataset.wanted = wanted;
    const focus = this.legend.contains(document.activeElement)
      ? document.activeElement.dataset.focus
      : null;
    const one = (line) => {
      const hide = el(
        "button",
        {
          type: "button",
          class: "key",
          "aria-pressed": String(this.shows(line)),
          "data-focus": `hide ${line.key}`,
          title: "Hide or show",
          onclick: () => this.hide(line.key),
        },
        lineSwatch(line.look),
        line.runs.length > 1 || read("group") ? `${line.name} (${line.runs.length})` : line.name,
      );
      const only = el(
        "button",
        {
          type: "button",
          class: "only",
          "aria-pressed": String(this.solo === line.key),
          "data-focus": `only ${line.key}`,
          "aria-label": `Show only ${line.name}`,
          onclick: () => this.only(line.key),
        },
        "only",
      );
      return el(
        "span",
        { class: "line", "data-off": this.shows(line) ? null : "true" },
        hide,
        only,
      );
    };
    const marks = [
      el("span", { class: "key" }, swatch("cross"), "an agent leaves"),
      el("span", { class: "key" }, swatch("diamond"), "the delivered model"),
    ];
    const some = this.solo !== null || this.hidden.size > 0;
    const back = some
      ? [
          el(
            "button",
            {
              type: "button",
              class: "only",
              onclick: () => {
                [this.hidden, this.solo] = [new Set(), null];
                this.noteShown();
                this.draw();
              },
            },
            "show all",
          ),
        ]
      : [];
    this.legend.classList.toggle("many", all.length > MANY);
    this.legend.replaceChildren(...back, ...all.map(one), ...marks);
    if (focus)
      [...this.legend.querySelectorAll("[data-focus]")]
        .find((each) => each.dataset.focus === focus)
        ?.focus();
  }

  drawLines(context, plot, kind) {
    const track = this.track(kind);
    const { visible } = this;
    const many = visible.length > MANY;
    const scales = plot.scales();
    for (const line of visible) {
      const { first, bucket, column, band } = line.column(track);
      const own = { ...scales, middle: (index) => first[index] + (bucket - 1) / 2 };
      if (band) this.drawBand(context, own, band, line.look);
      const path = newPath(context);
      trace(path, own, column, 0, column.low.length, kind.counts);
      context.strokeStyle = line.look.colour;
      context.globalAlpha = many && !band ? 0.7 : 1;
      context.lineWidth = many ? 1.2 : 2.2;
      context.setLineDash(line.look.dash);
      context.stroke(path);
      context.setLineDash([]);
      context.globalAlpha = 1;
      if (line.run && !many) this.crosses(context, plot, line, track);
      const end = line.delivered(track);
      if (end !== end) continue;
      const last = lastKnown(column);
      const from = last >= 0 && !band ? [own.x(own.middle(last)), own.y(column.low[last])] : null;
      drawDelivered(context, {
        from,
        at: [own.x(line.end), own.y(end)],
        colour: line.look.colour,
        size: many ? 3.5 : 6,
      });
    }
  }

  drawBand(context, own, band, look) {
    const path = newPath(context);
    const known = [...band.low.keys()].filter((i) => band.low[i] === band.low[i]);
    known.forEach((i, place) =>
      path[place ? "lineTo" : "moveTo"](own.x(own.middle(i)), own.y(band.high[i])),
    );
    known.reverse().forEach((i) => path.lineTo(own.x(own.middle(i)), own.y(band.low[i])));
    if (known.length) path.closePath();
    context.fillStyle = look.colour;
    context.globalAlpha = 0.2;
    context.fill(path);
    context.globalAlpha = 1;
  }

  crosses(context, plot, line, track) {
    const rounds = [...new Set((line.run.detail.left || []).map((left) => left.round))].slice(
      0,
      60,
    );
    for (const round of rounds) {
      const { column, first } = line.column(track);
      let to = 0;
      while (to < first.length && first[to] <= round) to += 1;
      const last = lastKnown(column, to);
      if (last >= 0)
        drawCross(context, plot.x(round), plot.y(column.low[last]), {
          size: 4,
          ink: line.look.colour,
          paper: colours().card,
        });
    }
  }

  // The line nearest to the pointer is drawn above the others.
  hover(kind, plot, index, y) {
    let [near, distance] = [null, 24];
    if (index >= 0 && y !== null && this.lines) {
      const { y: up } = plot.scales();
      for (const line of this.visible) {
        const away = Math.abs(up(line.at(this.track(kind), plot.first[index])) - y);
        if (away < distance) [near, distance] = [line.key, away];
      }
    }
    if (near === this.near) return;
    this.near = near;
    this.plots.forEach((each) => each.plot.follow(true));
  }

  // The line that is highlighted.
  marked() {
    return this.near && this.lines ? this.visible.find((one) => one.key === this.near) : undefined;
  }

  mark(context, plot, kind) {
    const line = this.marked();
    const { first, bucket, column } = line.column(this.track(kind));
    const path = new Path2D();
    trace(
      path,
      { ...plot.scales(), middle: (index) => first[index] + (bucket - 1) / 2 },
      column,
      0,
      column.low.length,
      kind.counts,
    );
    const { left, right, top, bottom } = plot.area;
    context.save();
    context.beginPath();
    context.rect(left, top, right - left, bottom - top);
    context.clip();
    for (const [colour, width] of [
      [colours().card, 6],
      [line.look.colour, 3],
    ]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.stroke(path);
    }
    context.restore();
  }

  show(kind, value) {
    if (!Number.isFinite(value)) return NONE;
    return kind.counts
      ? String(Math.round(value * 100) / 100)
      : shownAs(this.measure)(value);
  }

  values(kind) {
    if (!this.lines) return [];
    const round = this.cursor.shown;
    const track = this.track(kind);
    return this.visible.map((line) => {
      const value = line.at(track, round);
      const band = line.bandAt && line.runs.length > 1 ? line.bandAt(track, round) : null;
      const spanned = () =>
        band ? ` (${this.show(kind, band[0])} to ${this.show(kind, band[1])})` : "";
      const over = () =>
        line.over && round >= line.end && Number.isFinite(line.delivered(track))
          ? "delivered "
          : "";
      const text = () => `${over()}${this.show(kind, value)}${spanned()}`;
      return {
        name: line.name,
        value,
        get shown() {
          return text();
        },
        look: line.look,
        near: line.key === this.near,
      };
    });
  }

  // The numbers of all visible lines, for a file.
  numbers(kind) {
    const track = this.track(kind);
    return this.visible.flatMap((line) => {
      const { first, bucket, column, band } = line.column(track);
      const own = { name: line.name, column, first, bucket, delivered: line.delivered(track) };
      if (!band) return [own];
      const end = (name, values) => ({
        name: `${line.name}, ${name}`,
        column: { low: values, high: values },
        first,
        bucket,
        delivered: NaN,
      });
      return [
        { ...own, name: `${line.name}, mean` },
        end("band from", band.low),
        end("band to", band.high),
      ];
    });
  }

  says(kind) {
    if (!this.lines) return "";
    const round = this.cursor.shown;
    const track = this.track(kind);
    const each = this.visible.slice(0, 8).map((line) => {
      const [end, there] = [line.delivered(track), this.show(kind, line.at(track, round))];
      if (round < line.end || !line.over) return `${line.name} ${there}`;
      // Where a run has ended, what it delivered is what counts.
      return end === end
        ? `${line.name}: ended in ${line.end}, delivered ${this.show(kind, end)}`
        : `${line.name}: ended in ${line.end} with ${there}`;
    });
    const more = this.visible.length > 8 ? [`and ${this.visible.length - 8} more`] : [];
    return [`round ${round}`, ...each, ...more].join(" · ");
  }

  toggles(row) {
    const line = this.lines.find((one) => one.key === row.key);
    const hide = el("input", {
      type: "checkbox",
      "aria-label": `Show ${row.name}`,
      "data-focus": `show ${row.key}`,
    });
    hide.checked = this.shows(line);
    hide.addEventListener("change", () => this.hide(row.key));
    const only = el(
      "button",
      {
        type: "button",
        class: "only",
        "aria-pressed": String(this.solo === row.key),
        "aria-label": `Show only ${row.name}`,
        "data-focus": `solo ${row.key}`,
        onclick: () => this.only(row.key),
      },
      "only",
    );
    return el("span", { class: "toggles" }, hide, only);
  }

  updateTable() {
    const rows = this.lines.map((line) => {
      const members = line.runs.map((run) => this.row(run));
      if (line.run)
        return { ...members[0], key: line.key, look: line.look, hidden: !this.shows(line) };
      return {
        key: line.key,
        name: line.name,
        look: line.look,
        members,
        settings: {},
        hidden: !this.shows(line),
      };
    });
    if (rows.some((row) => row.members))
      for (const row of rows)
        row.settings = Object.assign({}, ...row.members.map((member) => member.settings));
    const wanted = JSON.stringify([rows, this.solo]);
    if (this.table.body.dataset.wanted === wanted) return;
    this.table.body.dataset.wanted = wanted;
    this.table.set(rows);
  }

  // For a run that is over what it delivered, for another how far it has come.
  row(run) {
    const { detail, series } = run;
    const { delivered } = detail;
    const last = (name) => {
      const track = trackOf(series, name);
      const at = lastKnown(track);
      return at >= 0 ? track.low[at] : NaN;
    };
    const names = keysOf(detail.measures);
    const known = (value) => (Number.isFinite(value) ? value : NaN);
    const values = Object.fromEntries(
      names.map((name) => [name, known(delivered ? delivered[name] : last(name))]),
    );
    const { head, tone } = verdict(detail);
    return {
      name: detail.listing.name,
      href: linkTo("run", run.id),
      verdict: { head, tone },
      settings: { rule: detail.listing.rule, ...detail.settings },
      values: {
        ...values,
        agents: detail.agents_all || 0,
        left: delivered ? delivered.left : detail.counts ? detail.counts.left : 0,
        content: delivered ? delivered.content : known(last("content")),
        rounds: detail.round || 0,
      },
      measures: detail.measures,
    };
  }
}
