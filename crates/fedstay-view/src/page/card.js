// What every chart has around it: a title, a sentence, choices, a legend, a menu to save it.

import { roomFor } from "./axes.js";
import { CHARTS } from "./charts.js";
import { saveMenu } from "./save.js";
import { lineSwatch, swatch } from "./sign.js";
import { colours, onPage } from "./theme.js";
import { el } from "./words.js";

// `of` says which run it is, for the file that is saved; `lines` are its numbers.
export function card({ title, about, plot, of, lines, extra = [] }) {
  const legend = el("div", { class: "legend" });
  const heading = el("h2", {}, title);
  const save = saveMenu({
    plot,
    lines,
    title: () => [of(), heading.textContent].filter(Boolean).join(": "),
  });
  const head = el("div", { class: "head" }, heading, ...extra, save);
  const words = el("p", { class: "about" }, about);
  const section = el(
    "section",
    { class: "card", "aria-label": title },
    head,
    words,
    legend,
    plot.box,
    plot.readout,
    plot.list.pinned,
  );
  return { section, legend, heading, about: words };
}

const FILLS = { free: "free", near: "near", fault: "fault", left: "left" };

function fillOf(kind) {
  const found = CHARTS.cases.find(({ number }) => kind === `case-${number}`);
  if (found) return onPage(found.colour);
  const name = FILLS[kind.replace("line-", "")];
  return name ? colours()[name] : null;
}

// Entries are [kind, text, look]; the same go into a file that is saved.
export function keys(legend, plot, entries) {
  plot.entries = entries.map(([kind, text, look]) => ({
    kind,
    text,
    look,
    get fill() {
      return fillOf(kind);
    },
  }));
  const wanted = entries
    .map(([kind, text, look]) => `${kind}|${text}|${look ? look.light : ""}`)
    .join("\n");
  if (legend.dataset.keys === wanted) return;
  legend.dataset.keys = wanted;
  legend.replaceChildren(
    ...entries.map(([kind, text, look]) =>
      el("span", { class: "key" }, look ? lineSwatch(look) : swatch(kind), text),
    ),
  );
}

// The last round on the axis: the run's last if it is over, else a little more.
export function endOf(run) {
  const last = (run.detail && run.detail.round) || 1;
  return run.detail && run.detail.status === "running"
    ? Math.min(roomFor(last), Math.max(run.detail.listing.asked, last))
    : last;
}

export function choice(label, options, chosen, pick) {
  const group = el("div", { class: "choice", role: "group", "aria-label": label });
  for (const [value, text] of options) {
    const button = el("button", { type: "button", "aria-pressed": String(value === chosen) }, text);
    button.addEventListener("click", () => {
      for (const other of group.children)
        other.setAttribute("aria-pressed", String(other === button));
      pick(value);
    });
    group.append(button);
  }
  return group;
}

// A cross on a chart: somebody leaves.
export function drawCross(context, x, y, { size, ink, paper, width = 2 }) {
  for (const [colour, wide, reach] of [
    [paper, width + 2.5, size + 0.5],
    [ink, width, size],
  ]) {
    context.strokeStyle = colour;
    context.lineWidth = wide;
    context.beginPath();
    context.moveTo(x - reach, y - reach);
    context.lineTo(x + reach, y + reach);
    context.moveTo(x + reach, y - reach);
    context.lineTo(x - reach, y + reach);
    context.stroke();
  }
}
