// The view of one run.

import { endOf } from "./card.js";
import { Cursor, zoomBar } from "./cursor.js";
import { Losses } from "./losses.js";
import { Map2 } from "./map.js";
import { LOSS, part, shownAs } from "./measures.js";
import { Members } from "./members.js";
import { Spread } from "./spread.js";
import { Strip } from "./strip.js";
import { AgentTable, Highlight } from "./table.js";
import { Kept, Quality, Steps } from "./tracks.js";
import { NONE, duration, el, number, sentence } from "./words.js";
import { several, short, title, verdict } from "./words.js";

function tile(label) {
  const value = el("dd", {}, NONE);
  return { element: el("div", { class: "tile" }, el("dt", {}, label), value), value };
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// The settings that a reader asks for first, by their keys, with the words for them.
const SETTINGS = [
  ["rule.kind", "rule"],
  ["epsilon", "target loss ε"],
  ["step_size", "step size η"],
  ["rule.delta", "slack δ"],
  ["partition.q", "heterogeneity q"],
  ["data.kind", "data"],
  ["problem.kind", "problem"],
  ["agents", "agents"],
  ["local.steps", "local steps K"],
  ["model.kind", "model"],
  ["behaviour.kind", "behaviour"],
  ["policy.kind", "policy"],
  ["participation", "participation"],
  ["privacy.noise", "privacy noise"],
  ["decides_on", "decides on"],
  ["seed", "seed"],
];
// Left out where they say what everybody expects.
const USUAL = { participation: 1, "policy.kind": "none", decides_on: "received", "rule.delta": 0 };

export class RunView {
  constructor(run) {
    this.run = run;
    this.cursor = new Cursor();
    this.highlight = new Highlight();
    this.heading = el("h1", { tabindex: "-1" }, " ");
    this.badge = el("span", { class: "badge" }, " ");
    this.words = el("p", { class: "words" }, " ");
    this.progress = el("p", { class: "faint progress" }, " ");
    this.settings = el("dl", { class: "settings", "aria-label": "Settings" });
    this.next = el("p", { class: "next", hidden: true });
    this.harm = el("p", { class: "harm", hidden: true });
    this.privacy = el("p", { class: "faint", hidden: true });
    this.tileRow = el("dl", { class: "tiles" });
    this.warnings = el("ul", { class: "warnings", hidden: true });
    this.trouble = el(
      "details",
      { class: "trouble", hidden: true },
      el("summary", {}, ""),
      el("ul"),
    );
    this.charts = [
      new Losses(run, this.cursor, this.highlight),
      new Strip(run, this.cursor, this.highlight),
      new Quality(run, this.cursor),
      new Kept(run, this.cursor),
      new Steps(run, this.cursor),
    ];
    this.cursor.zoomed = () => {
      this.charts.forEach((chart) => chart.update());
      // Rounds that are looked at closely are asked for in detail.
      run.look(this.cursor.range).then(
        (more) => {
          if (more) this.charts.forEach((chart) => chart.update());
        },
        () => {},
      );
    };
    run.range = this.cursor.range;
    if (!run.range) run.part = null;
    this.table = new AgentTable(run, this.highlight);
    this.spread = new Spread(run);
    this.members = new Members(run);
    this.theory = el("dl", { class: "facts" });
    this.advice = el("ul", { class: "advice" });
    this.config = el("pre", { tabindex: "0" }, "");
    this.mapPlace = el("div");
    this.zoom = zoomBar(this.cursor);
    this.element = el(
      "article",
      {},
      el("div", { class: "title" }, this.heading, this.badge),
      this.words,
      this.progress,
      this.next,
      this.settings,
      this.privacy,
      this.warnings,
      this.trouble,
      this.tileRow,
      this.harm,
      this.zoom,
      ...this.charts.slice(0, 4).map((chart) => chart.section),
      this.mapPlace,
      this.charts[4].section,
      this.table.section,
      this.spread.section,
      this.members.section,
      el(
        "section",
        { class: "card", "aria-label": "Theory" },
        el("div", { class: "head" }, el("h2", {}, "What the theory says")),
        el(
          "p",
          { class: "about" },
          "The theorem keeps everybody if steps are short enough and no gradient lies in " +
            "the span of the others. For nets all of this is a prediction.",
        ),
        this.theory,
        this.advice,
      ),
      el("details", { class: "card" }, el("summary", {}, "Configuration"), this.config),
    );
    this.config.setAttribute("aria-label", "config.toml");
    this.config.setAttribute("role", "region");
  }

  // What is counted while a run is under way, and of what it delivered once it is over.
  makeTiles(counters) {
    const wanted = JSON.stringify(counters);
    if (this.tileRow.dataset.wanted === wanted) return;
    this.tileRow.dataset.wanted = wanted;
    this.tiles = Object.fromEntries(counters.map(({ key, label }) => [key, tile(label)]));
    this.tileRow.replaceChildren(...Object.values(this.tiles).map((each) => each.element));
  }

  remove() {
    this.charts.forEach((chart) => chart.plot.remove());
    if (this.map) this.map.remove();
  }

  update() {
    const { detail } = this.run;
    if (!detail) return;
    const { listing } = detail;
    setText(this.heading, title(listing));
    document.title = `${title(listing)} · fedstay`;
    const { tone, head, text, stop } = verdict(detail);
    setText(this.badge, head);
    this.badge.dataset.tone = tone;
    this.badge.classList.toggle("live", detail.status === "running");
    setText(this.words, [text, sentence(stop)].filter(Boolean).join(" "));
    const of = detail.status === "finished" ? "" : ` of at most ${listing.asked}`;
    const cut = detail.cut ? " · the rest is too much to show" : "";
    setText(
      this.progress,
      detail.status === "unreadable"
        ? listing.name
        : `${listing.name} · round ${detail.round || 0}${of} · ` +
            `${several(detail.agents_all || 0, "agent")}${this.times(detail)}${cut}`,
    );
    this.next.hidden = !detail.next;
    if (detail.next) this.tellNext(detail.next);
    this.hideEmpty(detail);
    this.updateSettings(detail);
    this.harm.hidden = !detail.harm;
    setText(this.harm, detail.harm || "");
    this.privacy.hidden = !detail.privacy;
    setText(this.privacy, detail.privacy ? `Privacy: ${detail.privacy}.` : "");
    this.cursor.end = Math.max(2, endOf(this.run));
    this.cursor.tellZoom();
    this.updateTiles(detail);
    this.updateWarnings(detail);
    this.updateTrouble(detail);
    for (const chart of this.charts) chart.update();
    this.table.update();
    this.spread.update();
    this.members.update();
    this.updateTheory(detail);
    setText(this.config, detail.config || "There is no config.toml in this folder.");
    if (detail.map && !this.map) {
      this.map = new Map2(this.run);
      this.mapPlace.append(this.map.section);
    }
    if (this.map) this.map.update();
  }

  // How long it has taken, and may still take, by the times of its files.
  times({ times, status }) {
    if (!times) return "";
    const began = new Date(times.began).toLocaleString("en-GB", {
      day: "numeric",
      month: "short",
      year: "numeric",
      hour: "2-digit",
      minute: "2-digit",
    });
    const took =
      status === "finished"
        ? `took ${duration(times.elapsed)}`
        : `${duration(times.elapsed)} so far`;
    const left = times.left === null ? "" : ` · at most ${duration(times.left)} left`;
    return ` · began ${began} · ${took}${left}`;
  }

  tellNext({ say, command }) {
    if (this.next.dataset.wanted === command) return;
    this.next.dataset.wanted = command;
    this.next.replaceChildren(`${say}: `, el("code", {}, command));
  }

  // A run of which nothing can be read has no charts: axes without a line would look like results.
  hideEmpty({ status, rounds }) {
    const none = status === "unreadable" || (status === "finished" && !rounds);
    this.tileRow.hidden = status === "unreadable";
    for (const part of [
      this.zoom,
      ...this.charts.map((chart) => chart.section),
      this.table.section,
      this.theory.closest("section"),
    ])
      part.hidden = none;
  }

  updateSettings({ settings, theory, listing }) {
    // Other rules have a δ in their file too, but keep nobody by it.
    const applies = (key) => key !== "rule.delta" || theory.delta !== null;
    const known = SETTINGS.filter(
      ([key]) =>
        settings && settings[key] !== undefined && settings[key] !== USUAL[key] && applies(key),
    );
    // The rule under the name that the run has everywhere.
    const value = (key) => (key === "rule.kind" && listing.rule ? listing.rule : settings[key]);
    const wanted = JSON.stringify(known.map(([key]) => value(key)));
    this.settings.hidden = !known.length;
    if (this.settings.dataset.wanted === wanted) return;
    this.settings.dataset.wanted = wanted;
    const text = (one) =>
      typeof one === "number" && !Number.isInteger(one) ? short(one) : String(one);
    this.settings.replaceChildren(
      ...known.map(([key, name]) =>
        el("div", { title: key }, el("dt", {}, name), el("dd", {}, text(value(key)))),
      ),
    );
  }

  updateTiles(detail) {
    const { delivered } = detail;
    this.makeTiles(detail.counters);
    const { series } = this.run;
    const last = (name) => {
      const column = series && series.tracks[name];
      if (!column) return null;
      for (let i = column.low.length - 1; i >= 0; i -= 1)
        if (column.low[i] === column.low[i]) return column.low[i];
      return null;
    };
    // Once it is over, only the delivered model is shown.
    const value = (name) => (delivered ? delivered[name] : last(name));
    const set = (key, text) => setText(this.tiles[key].value, text);
    const known = (measure) => Number.isFinite(value(part(measure, "mean")));
    const headline = detail.measures.find(known) || LOSS;
    const exact = headline !== LOSS || delivered || !series || series.measured;
    for (const key of ["mean", "worst"]) {
      setText(
        this.tiles[key].element.firstChild,
        `${key} ${headline.label}${exact ? "" : " (reported)"}`,
      );
      set(key, shownAs(headline)(value(part(headline, key))));
    }
    if (delivered) this.updateDelivered(detail, set);
    else this.updateRunning(detail, set);
  }

  updateDelivered({ delivered, summary, round }, set) {
    set("left", `${delivered.left} of ${delivered.agents}`);
    set("content", `${delivered.content} of ${delivered.agents}`);
    set("rounds", String(summary.rounds || round || 0));
    this.tiles.left.element.classList.toggle("bad", delivered.left > 0);
    this.tiles.content.element.classList.toggle(
      "good",
      delivered.agents > 0 && delivered.content === delivered.agents,
    );
    this.tiles.content.element.classList.toggle("warn", delivered.content < delivered.agents);
  }

  updateRunning(detail, set) {
    const counts = detail.counts || {};
    const all = detail.agents_all || 0;
    set("in", `${all - (counts.left || 0)} of ${all}`);
    set("near", String(counts.in_d || 0));
    set("left", String(counts.left || 0));
    set("faults", String(counts.fault || 0));
    set("step", number(detail.last ? detail.last.step_size : null));
    this.tiles.near.element.classList.toggle("warn", (counts.in_d || 0) > 0);
    this.tiles.left.element.classList.toggle("bad", (counts.left || 0) > 0);
    this.tiles.faults.element.classList.toggle("bad", (counts.fault || 0) > 0);
  }

  // What a reader should know before believing the rest.
  updateWarnings(detail) {
    const warnings = (detail.summary && detail.summary.warnings) || [];
    this.warnings.hidden = warnings.length === 0;
    const wanted = JSON.stringify(warnings);
    if (this.warnings.dataset.wanted === wanted) return;
    this.warnings.dataset.wanted = wanted;
    this.warnings.replaceChildren(
      ...warnings.slice(0, 20).map((warning) => el("li", {}, sentence(String(warning)))),
    );
  }

  updateTrouble(detail) {
    this.trouble.hidden = !detail.troubles;
    if (!detail.troubles) return;
    const [summary, list] = this.trouble.children;
    setText(
      summary,
      `${several(detail.troubles, "line or file", "lines or files")} could not be read` +
        `${detail.status === "unreadable" ? "" : "; everything else is shown"}.`,
    );
    if (detail.status === "unreadable") this.trouble.open = true;
    const wanted = JSON.stringify(detail.trouble);
    if (list.dataset.wanted === wanted) return;
    list.dataset.wanted = wanted;
    list.replaceChildren(
      ...detail.trouble.map((one) => {
        const where = one.line === null ? one.file : `${one.file}, line ${one.line}`;
        return el("li", {}, el("b", {}, where), `: ${one.why}`);
      }),
    );
  }

  updateTheory(detail) {
    const { theory } = detail;
    const found = theory.findings;
    const constant = (known, seen) => {
      if (known !== null && known !== undefined) return `${number(known)} (known)`;
      return seen ? `at least ${number(seen)} (seen)` : "not known";
    };
    const bound =
      theory.theorem_step !== null ? theory.theorem_step : found ? found.theorem_step : null;
    const certain =
      theory.theorem_step !== null
        ? "from known constants"
        : "from what was seen so far: an estimate";
    const within = (used) =>
      !bound || used === null
        ? ""
        : used <= bound * (1 + 1e-9)
          ? " – within the bound"
          : " – above the bound";
    const [first, now] = [theory.step_size, detail.last ? detail.last.step_size : null];
    const size = (used) => (used === null ? NONE : `${number(used)}${within(used)}`);
    const sizes =
      now === null || now === first
        ? [["step size η", size(first)]]
        : [
            ["step size η at the start", size(first)],
            [`step size η in round ${detail.round}`, size(now)],
          ];
    const slack = theory.delta !== null;
    const angle =
      found && found.smallest_angle !== null
        ? `${number(found.smallest_angle, 2)}° in round ${found.smallest_angle_round} (90° is best)`
        : null;
    const rank = detail.last && detail.last.rank;
    const summed = detail.summary ? detail.summary.misses : null;
    const misses =
      summed !== null && summed !== undefined ? summed : detail.last ? detail.last.misses : null;
    const facts = [
      ...sizes,
      [
        "the theorem’s bound on it",
        !slack
          ? "none for this rule"
          : bound === null
            ? "not known"
            : bound === 0
              ? "none: δ is zero"
              : `${number(bound)} (${certain})`,
      ],
      ["slack δ", slack ? number(theory.delta) : "this rule keeps nobody by one"],
      ["Lipschitz constant L", constant(theory.lipschitz, found && found.lipschitz_seen)],
      ["smoothness H", constant(theory.smoothness, found && found.smoothness_seen)],
      ["smallest angle between a gradient and the others’ span", angle || "not recorded"],
      ["independent gradients held clear of", rank ? `${rank[0]} of ${rank[1]}` : NONE],
      ["keeping everybody", detail.keeping],
      [
        "predictions that missed",
        misses === null || misses === undefined
          ? "this rule rests on none"
          : misses === 0
            ? "none"
            : `${misses}: a loss came out below its prediction by more than the agent’s room`,
      ],
      ["landed", detail.landing || "this rule does not try"],
    ];
    const wanted = JSON.stringify([facts, found && found.advice]);
    if (this.theory.dataset.wanted === wanted) return;
    this.theory.dataset.wanted = wanted;
    this.theory.replaceChildren(
      ...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
    );
    const notes = found
      ? [...found.advice]
      : detail.sketch
        ? []
        : [
            "Gradients are not recorded in this run. With --set record_gram=true the " +
              "angle between them and the constants L and H can be seen.",
          ];
    if (theory.passed)
      notes.push(`${theory.passed} of the recorded matrices were skipped to save time.`);
    this.advice.replaceChildren(...notes.map((note) => el("li", {}, note)));
  }
}
