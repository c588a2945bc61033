// The agents as a table that can be sorted; a row's button keeps its agent highlighted.

import { shownAs } from "./measures.js";
import { swatch } from "./sign.js";
import { read, write } from "./state.js";
import { NONE, el, number, percent } from "./words.js";

function predicted(agent, { round, states }) {
  if (agent.left !== null) return [`left in ${agent.left}`, agent.left];
  if (states[agent.state].name === "near") return ["next, unless held", round + 1];
  return agent.forecast ? [agent.departure, agent.forecast.likely] : [NONE, Infinity];
}

// A loss, or how far it is above ε: with ≥ where only a bound is known, with its round where that
// is not the last.
function known(value, agent, round) {
  if (value === null) return NONE;
  const old =
    agent.loss_round !== null && agent.loss_round < round ? ` (in ${agent.loss_round})` : "";
  return `${agent.source === "at-least" ? "≥ " : ""}${number(value)}${old}`;
}

// What is counted about an agent has the names it has in summary.json; what is zero or none is not
// sent, except `left`, `rounds_in_d` and `reports`.
const AGENT = { name: "agent", text: true, value: (agent) => agent.id };
const EPSILON = {
  name: "ε",
  about: "its target loss: at this loss it leaves",
  value: (agent) => agent.epsilon,
  show: (agent) => number(agent.epsilon),
};
const MARGIN = {
  name: "margin",
  about: "loss minus ε",
  value: (agent) => agent.margin,
  show: (agent) => number(agent.margin),
};

const SHOWN = {
  name: "shown",
  about:
    "its loss at what it was last shown, if that was not the server’s model, and in how " +
    "many rounds it was not",
  value: (agent) => agent.previewed || 0,
  show: (agent) =>
    agent.previewed ? `${number(agent.last_shown)} (${agent.previewed} rounds)` : NONE,
  only: (agents) => agents.some((agent) => agent.previewed),
};
const CLASSES = {
  name: "classes",
  about: "which classes its samples are of, by the configuration",
  text: true,
  value: (agent) => agent.classes || NONE,
  show: (agent) => agent.classes || NONE,
  only: (agents) => agents.some((agent) => agent.classes),
};

const RUNNING = [
  AGENT,
  { name: "now", text: true, value: (agent) => agent.state },
  {
    name: "loss",
    about: "the last exact one, with its round; ≥ where only a bound is known",
    value: (agent) => agent.loss,
    show: (agent, { round }) => known(agent.loss, agent, round),
  },
  EPSILON,
  {
    ...MARGIN,
    about: "the loss beside it minus ε",
    show: (agent, { round }) => known(agent.margin, agent, round),
  },
  { measured: "of the model it received, when that was last measured", of: (agent) => agent },
  {
    name: "rounds waited",
    about: "rounds in which it was about to leave",
    value: (agent) => agent.rounds_in_d,
    show: (agent) => String(agent.rounds_in_d),
  },
  {
    name: "predicted departure",
    about:
      "by its last exact losses, if nothing holds it and nobody else leaves; a dash " +
      "where they do not say",
    value: (agent, detail) => predicted(agent, detail)[1],
    show: (agent, detail) => predicted(agent, detail)[0],
  },
  {
    name: "contribution",
    about: "share of the rounds in which its report moved the model",
    value: (agent) => agent.moved || 0,
    show: (agent, detail) =>
      percent(detail.rounds && !detail.sketch ? (agent.moved || 0) / detail.rounds : null),
  },
  SHOWN,
  CLASSES,
  {
    name: "behaviour",
    about: "by the configuration",
    text: true,
    value: (agent) => agent.behaviour || NONE,
    show: (agent) => agent.behaviour || NONE,
    only: (agents) => agents.some((agent) => agent.behaviour),
  },
];

const CONTENT = new Map([
  [true, "yes"],
  [false, "no"],
]);

function behaviour(agent) {
  const flags = agent.flags ? ` · contradicted itself ${agent.flags}×` : "";
  return `${agent.delivered.behaviour || agent.behaviour || NONE}${flags}`;
}

function leftIn(agent) {
  if (agent.left !== null) return String(agent.left);
  return agent.returned ? `back since ${agent.returned}` : "stayed";
}

// A value on held-back rows, with its interval.
function heldBack(known) {
  if (!known) return NONE;
  const shown = shownAs(known.measure);
  return `${shown(known.value)} [${shown(known.low)}, ${shown(known.high)}]`;
}

// For a run that is over: what it delivered to each agent.
const OVER = [
  AGENT,
  {
    name: "content",
    about: "whether its loss under the delivered model is at most its ε",
    value: (agent) => Number(agent.delivered.content),
    show: (agent) => CONTENT.get(agent.delivered.content) || "not asked",
  },
  {
    name: "loss",
    about: "under the delivered model",
    value: (agent) => agent.loss,
    show: (agent) =>
      number(agent.loss) +
      (agent.delivered.loss_of_round === null ? "" : ` (told in ${agent.delivered.loss_of_round})`),
  },
  EPSILON,
  MARGIN,
  { measured: "under the delivered model", of: (agent) => agent.delivered },
  {
    name: "on its own held-back rows",
    about:
      "the headline under the delivered model, on rows of its own that nobody trained on, " +
      "with its 95% interval",
    value: (agent) => agent.delivered.held_back?.value ?? null,
    show: (agent) => heldBack(agent.delivered.held_back),
    only: (agents) => agents.some((agent) => agent.delivered?.held_back),
  },
  SHOWN,
  {
    name: "left in round",
    value: (agent) => (agent.left === null ? Infinity : agent.left),
    show: leftIn,
  },
  CLASSES,
  { name: "behaviour", text: true, value: behaviour, show: behaviour },
];

// A column for every measure in the place of one that stands for them all.
function measured({ measured: about, of }, { agents, measures }) {
  const column = (measure) => {
    const value = (agent) => of(agent)?.measures[measure.name] ?? null;
    const show = (agent) => shownAs(measure)(value(agent));
    return { name: measure.label, about, value, show };
  };
  const known = ({ name }) => agents.some((agent) => Number.isFinite(of(agent)?.measures[name]));
  return measures.filter(known).map(column);
}

// What the losses in the table are.
function told({ delivered, previews, own }) {
  if (delivered) return "Losses and what else is measured are those of the delivered model.";
  const which = previews
    ? " Losses are those of what each agent was shown, on which it decides."
    : own
      ? " Losses are those of each agent’s own model, on which it decides."
      : "";
  return (
    "Losses are the last exact ones, with their round. A loss with ≥ is a lower bound: " +
    `the agent stopped evaluating once its decision was certain.${which}`
  );
}

export class AgentTable {
  constructor(run, highlight) {
    this.run = run;
    this.highlight = highlight;
    this.sort = { column: 0, down: false };
    this.rows = new Map();
    this.head = el("tr");
    this.body = el("tbody");
    this.caption = el("caption", { class: "hidden" });
    const table = el("table", {}, this.caption, el("thead", {}, this.head), this.body);
    this.note = el("p", { class: "about" });
    this.section = el(
      "section",
      { class: "card", "aria-label": "Agents" },
      el("div", { class: "head" }, el("h2", {}, "Agents")),
      this.note,
      el(
        "div",
        { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table of agents" },
        table,
      ),
    );
    highlight.listeners.add(() => this.mark());
    this.choose(RUNNING);
  }

  // A run that is over has other columns.
  choose(all) {
    const detail = this.run.detail || { agents: [], measures: [] };
    // What is known of nobody is not a column.
    const columns = all
      .filter((column) => !column.only || column.only(detail.agents))
      .flatMap((column) => (column.measured ? measured(column, detail) : column));
    const wanted = columns.map((column) => column.name).join("|");
    if (this.wanted === wanted) return;
    this.wanted = wanted;
    this.columns = columns;
    const sorted = (read("agents") || "").replace("-", "");
    this.sort = {
      column: Math.max(
        0,
        columns.findIndex((column) => column.name === sorted),
      ),
      down: (read("agents") || "").startsWith("-"),
    };
    this.rows.clear();
    this.body.replaceChildren();
    this.caption.textContent =
      all === OVER
        ? "Every agent, under the delivered model"
        : "Every agent, as of the last round read";
    this.heads = columns.map((column, index) => {
      const button = el("button", { type: "button", title: column.about }, column.name);
      button.addEventListener("click", () => this.sortBy(index));
      return el(
        "th",
        { scope: "col", class: column.text ? "text" : "", "aria-sort": "none" },
        button,
      );
    });
    this.head.replaceChildren(...this.heads);
  }

  sortBy(index) {
    this.sort = { column: index, down: this.sort.column === index ? !this.sort.down : false };
    write("agents", `${this.sort.down ? "-" : ""}${this.columns[index].name}`);
    this.update();
  }

  row(agent, place) {
    if (this.rows.has(place)) return this.rows.get(place);
    const cells = this.columns.map((column, index) =>
      el(index === 0 ? "th" : "td", {
        scope: index === 0 ? "row" : null,
        class: column.text ? "text" : "",
      }),
    );
    const button = el("button", { type: "button", "aria-pressed": "false" }, agent.called);
    button.addEventListener("click", () => this.highlight.pin(place));
    cells[0].append(button);
    const element = el("tr", {}, ...cells);
    element.addEventListener("pointerenter", () => this.highlight.hover(place));
    element.addEventListener("pointerleave", () => this.highlight.hover(null));
    const row = { element, cells, button, place };
    this.rows.set(place, row);
    return row;
  }

  update() {
    const { detail } = this.run;
    const fewer =
      detail.agents.length < (detail.agents_all || 0)
        ? `The first ${detail.agents.length} of ${detail.agents_all} agents. `
        : "";
    this.choose(detail.delivered ? OVER : RUNNING);
    this.note.textContent = `${fewer}${told(detail)}`;
    const { column, down } = this.sort;
    const order = detail.agents.map((agent, place) => [this.known(agent), place]);
    const key = (agent) => {
      const value = this.columns[column].value(agent, detail);
      return value === null || value === undefined ? Infinity : value;
    };
    order.sort(([a, i], [b, j]) => {
      const [x, y] = [key(a), key(b)];
      if (x === y) return i - j;
      return (x < y ? -1 : 1) * (down ? -1 : 1);
    });
    this.heads.forEach((head, index) =>
      head.setAttribute("aria-sort", index !== column ? "none" : down ? "descending" : "ascending"),
    );
    order.forEach(([agent, place], position) => {
      const row = this.row(agent, place);
      this.columns.forEach((each, index) => {
        if (index === 0) return;
        if (each.name === "now") this.state(row.cells[index], agent);
        else this.text(row.cells[index], each.show(agent, detail));
      });
      if (this.body.children[position] !== row.element)
        this.body.insertBefore(row.element, this.body.children[position] || null);
    });
    while (this.body.children.length > order.length) {
      this.body.lastChild.remove();
    }
    this.mark();
  }

  // Once a run is over, an agent's loss is that under the delivered model.
  known(agent) {
    if (!this.run.detail.delivered) return agent;
    const delivered = agent.delivered || {
      loss: null,
      loss_of_round: null,
      measures: {},
      content: null,
      behaviour: null,
    };
    const margin =
      delivered.loss === null || agent.epsilon === null ? null : delivered.loss - agent.epsilon;
    return { ...agent, delivered, loss: delivered.loss, margin };
  }

  state(cell, agent) {
    const kind = `${agent.state}${agent.fault || ""}${agent.returned}${agent.flags}`;
    if (cell.dataset.kind === kind) return;
    cell.dataset.kind = kind;
    const state = this.run.detail.states[agent.state];
    const why = state.name === "fault" && agent.fault ? agent.fault : state.text;
    const more = [
      agent.returned && agent.left === null ? ` · back since ${agent.returned}` : "",
      agent.flags ? ` · contradicts itself ${agent.flags}×` : "",
    ];
    cell.replaceChildren(
      swatch(state.name),
      el("span", { title: why }, state.brief + more.join("")),
    );
  }

  text(cell, value) {
    if (cell.textContent !== value) cell.textContent = value;
  }

  mark() {
    const [shown, pinned] = [this.highlight.shown(), this.highlight.pinned];
    for (const row of this.rows.values()) {
      // Asked with every movement of the pointer, so only what changes is touched.
      if (row.shown !== (row.place === shown))
        row.element.classList.toggle("shown", (row.shown = row.place === shown));
      if (row.pinned !== (row.place === pinned))
        row.button.setAttribute("aria-pressed", String((row.pinned = row.place === pinned)));
    }
  }
}

// The agent that all charts highlight: one that is pinned, or the one under the pointer.
export class Highlight {
  constructor() {
    const agent = Number(read("agent") ?? NaN);
    this.pinned = Number.isInteger(agent) && agent >= 0 ? agent : null;
    this.hovered = null;
    this.listeners = new Set();
  }

  shown() {
    return this.hovered !== null ? this.hovered : this.pinned;
  }

  hover(place) {
    if (place === this.hovered) return;
    this.hovered = place;
    this.tell();
  }

  pin(place) {
    this.pinned = this.pinned === place ? null : place;
    write("agent", this.pinned);
    this.tell();
  }

  tell() {
    for (const listener of this.listeners) listener();
  }
}
