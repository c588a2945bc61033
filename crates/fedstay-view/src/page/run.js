// The view of one run.

import { Cursor } from "./axes.js";
import { Accuracy, Losses, Steps, Strip } from "./charts.js";
import { Map2 } from "./map.js";
import { AgentTable, Highlight } from "./table.js";
import { NONE, el, number, percent, several, stopWords, title, verdict } from "./words.js";

function tile(label) {
  const value = el("dd", {}, NONE);
  return { element: el("div", { class: "tile" }, el("dt", {}, label), value), value };
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export class RunView {
  constructor(run) {
    this.run = run;
    this.cursor = new Cursor();
    this.highlight = new Highlight();
    this.heading = el("h1", { tabindex: "-1" }, " ");
    this.badge = el("span", { class: "badge" }, " ");
    this.words = el("p", { class: "words" }, " ");
    this.progress = el("p", { class: "faint progress" }, " ");
    const names = [["in", "still in"], ["near", "about to leave"], ["left", "left"], ["faults", "did not answer"], ["mean", "mean accuracy"], ["worst", "worst agent"], ["step", "step size η"]];
    this.tiles = Object.fromEntries(names.map(([key, label]) => [key, tile(label)]));
    this.trouble = el("details", { class: "trouble", hidden: true }, el("summary", {}, ""), el("ul"));
    this.charts = [new Losses(run, this.cursor, this.highlight), new Strip(run, this.cursor, this.highlight), new Accuracy(run, this.cursor), new Steps(run, this.cursor)];
    this.table = new AgentTable(run, this.highlight);
    this.theory = el("dl", { class: "facts" });
    this.advice = el("ul", { class: "advice" });
    this.config = el("pre", { tabindex: "0" }, "");
    this.mapPlace = el("div");
    this.element = el("article", {},
      el("div", { class: "title" }, this.heading, this.badge),
      this.words, this.progress, this.trouble,
      el("dl", { class: "tiles" }, ...Object.values(this.tiles).map((each) => each.element)),
      ...this.charts.slice(0, 3).map((chart) => chart.section),
      this.mapPlace,
      this.charts[3].section,
      this.table.section,
      el("section", { class: "card", "aria-label": "Theory" },
        el("div", { class: "head" }, el("h3", {}, "What the theory says")),
        el("p", { class: "about" }, "The theorem keeps everybody if steps are short enough and no gradient lies in the span of the others. For nets all of this is a prediction."),
        this.theory, this.advice),
      el("details", { class: "card" }, el("summary", {}, "Configuration"), this.config));
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
    const { tone, head, text } = verdict(detail);
    setText(this.badge, head);
    this.badge.dataset.tone = tone;
    this.badge.classList.toggle("live", detail.status === "running");
    const summary = detail.summary || {};
    const ended = stopWords(summary.stop || (detail.last && detail.last.stop));
    setText(this.words, ended ? `${text} ${ended[0].toUpperCase()}${ended.slice(1)}.` : text);
    const of = detail.status === "finished" ? "" : ` of at most ${listing.asked}`;
    const cut = detail.cut ? " · the rest is too much to show" : "";
    setText(this.progress, `${listing.name} · round ${detail.round || 0}${of} · ${several(detail.agents_all || 0, "agent")}${cut}`);
    this.updateTiles(detail);
    this.updateTrouble(detail);
    for (const chart of this.charts) chart.update();
    this.table.update();
    this.updateTheory(detail);
    setText(this.config, detail.config || "There is no config.toml in this folder.");
    if (detail.map && !this.map) {
      this.map = new Map2(this.run);
      this.mapPlace.append(this.map.section);
    }
    if (this.map) this.map.update();
  }

  updateTiles(detail) {
    const counts = detail.counts || {};
    const all = detail.agents_all || 0;
    const last = (name) => {
      const column = this.run.series && this.run.series.tracks[name];
      if (!column) return NaN;
      for (let i = column.low.length - 1; i >= 0; i -= 1) if (column.low[i] === column.low[i]) return column.low[i];
      return NaN;
    };
    const accuracy = last("accuracy_mean") === last("accuracy_mean");
    const final = detail.summary && detail.summary.accuracy;
    const set = (key, text) => setText(this.tiles[key].value, text);
    set("in", `${all - (counts.left || 0)} of ${all}`);
    set("near", String(counts.in_d || 0));
    set("left", String(counts.left || 0));
    set("faults", String(counts.fault || 0));
    const label = (key, text) => setText(this.tiles[key].element.firstChild, text);
    label("mean", accuracy || final ? "mean accuracy" : "mean loss");
    label("worst", accuracy || final ? "worst accuracy" : "worst loss");
    if (final) {
      set("mean", percent(final.mean));
      set("worst", percent(final.min));
    } else {
      set("mean", accuracy ? percent(last("accuracy_mean")) : number(last("loss_mean")));
      set("worst", accuracy ? percent(last("accuracy_worst")) : number(last("loss_worst")));
    }
    set("step", number(detail.last ? detail.last.step_size : null));
    this.tiles.near.element.classList.toggle("warn", (counts.in_d || 0) > 0);
    this.tiles.left.element.classList.toggle("bad", (counts.left || 0) > 0);
    this.tiles.faults.element.classList.toggle("bad", (counts.fault || 0) > 0);
  }

  updateTrouble(detail) {
    this.trouble.hidden = !detail.troubles;
    if (!detail.troubles) return;
    const [summary, list] = this.trouble.children;
    setText(summary, `${several(detail.troubles, "line or file", "lines or files")} could not be read; everything else is shown.`);
    const wanted = JSON.stringify(detail.trouble);
    if (list.dataset.wanted === wanted) return;
    list.dataset.wanted = wanted;
    list.replaceChildren(...detail.trouble.map((one) => {
      const where = one.line === null ? one.file : `${one.file}, line ${one.line}`;
      return el("li", {}, el("b", {}, where), `: ${one.why}`);
    }));
  }

  updateTheory(detail) {
    const { theory } = detail;
    const found = theory.findings;
    const constant = (known, seen) => {
      if (known !== null && known !== undefined) return `${number(known)} (known)`;
      return seen ? `at least ${number(seen)} (seen)` : "not known";
    };
    const bound = theory.theorem_step !== null ? theory.theorem_step : found ? found.theorem_step : null;
    const certain = theory.theorem_step !== null ? "from known constants" : "from what was seen so far: an estimate";
    const used = theory.step_size;
    const within = !bound || used === null ? "" : used <= bound * (1 + 1e-9) ? " – within it" : " – above it";
    const landed = (detail.summary && detail.summary.landed) || (detail.last && detail.last.landed);
    const landing = { certified: "yes, certified: provably under every precision at once", estimated: "yes, as far as can be predicted", no: "not yet" }[landed];
    const angle = found && found.smallest_angle !== null ? `${number(found.smallest_angle, 2)}° in round ${found.smallest_angle_round} (90° is best)` : null;
    const kept = detail.last ? detail.last.kept : null;
    const sure = { certified: "certified: proved for these losses and agents", estimated: "estimated: predicted from gradients" }[detail.summary && detail.summary.guarantee]
      || (kept === true ? "the last step keeps everybody, by first-order information" : kept === false ? "the last step could not keep everybody" : "this rule does not see to it");
    const rank = detail.last && detail.last.rank;
    const summed = detail.summary ? detail.summary.misses : null;
    const misses = summed !== null && summed !== undefined ? summed : detail.last ? detail.last.misses : null;
    const facts = [
      ["step size in use", used === null ? NONE : `${number(used)}${within}`],
      ["the theorem’s bound on it", bound === null ? "not known" : bound === 0 ? "none: δ is zero" : `${number(bound)} (${certain})`],
      ["slack δ", number(theory.delta)],
      ["Lipschitz constant L", constant(theory.lipschitz, found && found.lipschitz_seen)],
      ["smoothness H", constant(theory.smoothness, found && found.smoothness_seen)],
      ["smallest angle between a gradient and the others’ span", angle || "not recorded"],
      ["independent gradients held clear of", rank ? `${rank[0]} of ${rank[1]}` : NONE],
      ["keeping everybody", sure],
      ["predictions that missed", misses === null || misses === undefined ? "this rule rests on none" : misses === 0 ? "none" : `${misses}: a loss came out below its prediction by more than the agent’s room`],
      ["landed", landing || "this rule does not try"],
    ];
    const wanted = JSON.stringify([facts, found && found.advice]);
    if (this.theory.dataset.wanted === wanted) return;
    this.theory.dataset.wanted = wanted;
    this.theory.replaceChildren(...facts.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))));
    const notes = found ? [...found.advice] : detail.sketch ? [] : ["Gradients are not recorded in this run. With --set record_gram=true the angle between them and the constants L and H can be seen."];
    if (theory.passed) notes.push(`${theory.passed} of the recorded matrices were passed over to save time.`);
    this.advice.replaceChildren(...notes.map((note) => el("li", {}, note)));
  }
}
