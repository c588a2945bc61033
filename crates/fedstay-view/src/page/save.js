// Saving a chart: as SVG or PNG with its title and legend, or its numbers as CSV.

import { SvgContext } from "./svg.js";
import { colours } from "./theme.js";
import { el } from "./words.js";

const MARGIN = 12;
const TITLE = 30;
const ROW = 20;

// The name of a file about something with this title.
export function fileName(title, ending) {
  return `${title
    .toLowerCase()
    .replace(/[^\p{L}\p{N}]+/gu, "-")
    .replace(/^-|-$/g, "")
    .slice(0, 80)}.${ending}`;
}

export function download(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = el("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}

// Where every entry of the legend stands, in rows that fit the width.
function arranged(entries, width, measure) {
  let [x, row] = [MARGIN, 0];
  const places = entries.map((entry) => {
    const wide = measure(entry.text) + 44;
    if (x > MARGIN && x + wide > width - MARGIN) [x, row] = [MARGIN, row + 1];
    const place = { ...entry, x, row };
    x += wide;
    return place;
  });
  return { places, rows: entries.length ? row + 1 : 0 };
}

function drawSign(context, { kind, look, fill }, x, y) {
  const { ink, faint } = colours();
  context.lineWidth = 2;
  context.strokeStyle = look ? look.colour : fill || faint;
  context.fillStyle = fill || ink;
  if (kind === "cross" || kind === "diamond" || kind === "down" || kind === "up") {
    context.textAlign = "left";
    context.fillText({ cross: "✕", diamond: "◆", down: "▼", up: "▲" }[kind], x + 5, y);
  } else if (kind === "ring") {
    context.beginPath();
    context.arc(x + 11, y, 4, 0, 7);
    context.stroke();
  } else if (look || kind.startsWith("line-")) {
    context.setLineDash(look ? look.dash : []);
    context.beginPath();
    context.moveTo(x, y);
    context.lineTo(x + 22, y);
    context.stroke();
    context.setLineDash([]);
  } else {
    if (fill) context.fillRect(x + 3, y - 5, 16, 10);
    else context.strokeRect(x + 3, y - 5, 16, 10);
  }
}

// Draws a chart with title and legend on any context; `size` is where the parts are.
function drawSheet(context, plot, title, { width, height, places }) {
  const { card, ink } = colours();
  context.fillStyle = card;
  context.fillRect(0, 0, width, height);
  context.fillStyle = ink;
  context.font = "600 15px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.textAlign = "left";
  context.fillText(title, MARGIN, TITLE / 2 + 2);
  context.save();
  context.translate(0, TITLE);
  context.font = "12px system-ui, sans-serif";
  plot.paint(context);
  context.restore();
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  for (const place of places) {
    const y = TITLE + plot.height + 8 + ROW * place.row + ROW / 2;
    drawSign(context, place, place.x, y);
    context.fillStyle = ink;
    context.textAlign = "left";
    context.fillText(place.text, place.x + 30, y);
  }
}

function sizeOf(plot, measure) {
  const { places, rows } = arranged(plot.entries || [], plot.width, measure);
  return { width: plot.width, height: TITLE + plot.height + 16 + ROW * rows, places };
}

function measurer() {
  const ruler = document.createElement("canvas").getContext("2d");
  ruler.font = "12px system-ui, sans-serif";
  return (text) => ruler.measureText(text).width;
}

export function asSvg(plot, title) {
  const size = sizeOf(plot, measurer());
  const context = new SvgContext(size.width, size.height, title);
  drawSheet(context, plot, title, size);
  return context.toString();
}

export function asPng(plot, title) {
  const size = sizeOf(plot, measurer());
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * size.width, 2 * size.height];
  const context = canvas.getContext("2d");
  context.scale(2, 2);
  drawSheet(context, plot, title, size);
  return new Promise((resolve) => canvas.toBlob(resolve, "image/png"));
}

// A cell that a spreadsheet reads as text or number, never as a formula.
function cell(value) {
  // Series are sent in single precision; more digits would be noise.
  if (typeof value === "number")
    return Number.isFinite(value) ? String(Number(value.toPrecision(7))) : "";
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

// One row per round, or per bucket of rounds with its smallest and largest value, then the
// delivered model.
export function asCsv(lines) {
  const thinned = lines.some(({ bucket }) => bucket > 1);
  const heads = lines.flatMap(({ name }) =>
    thinned ? [`${name} (least)`, `${name} (most)`] : [name],
  );
  const rows = new Map();
  lines.forEach(({ column, first }, line) => {
    for (let i = 0; i < column.low.length; i += 1) {
      if (column.low[i] !== column.low[i]) continue;
      const row = rows.get(first[i]) || new Array(heads.length).fill("");
      if (thinned) [row[2 * line], row[2 * line + 1]] = [column.low[i], column.high[i]];
      else row[line] = column.low[i];
      rows.set(first[i], row);
    }
  });
  const text = [
    ["round", ...heads],
    ...[...rows].sort(([a], [b]) => a - b).map(([round, row]) => [round, ...row]),
  ];
  if (lines.some(({ delivered }) => Number.isFinite(delivered))) {
    text.push([
      "delivered",
      ...lines
        .flatMap(({ delivered }) => (thinned ? [delivered, delivered] : [delivered]))
        .map((value) => (Number.isFinite(value) ? value : "")),
    ]);
  }
  return csvOf(text);
}

export function csvOf(rows) {
  return `${rows.map((row) => row.map(cell).join(",")).join("\r\n")}\r\n`;
}

// The menu of a chart. `title` and `lines` are asked when something is saved.
export function saveMenu({ plot, title, lines }) {
  const name = (ending) => fileName(title(), ending);
  const kinds = [
    [
      "SVG",
      async () =>
        download(name("svg"), new Blob([asSvg(plot, title())], { type: "image/svg+xml" })),
    ],
    ["PNG", async () => download(name("png"), await asPng(plot, title()))],
    ["CSV", async () => download(name("csv"), new Blob([asCsv(lines())], { type: "text/csv" }))],
  ];
  const group = el("div", {
    class: "choice save",
    role: "group",
    "aria-label": "Save this chart as",
  });
  for (const [kind, act] of kinds)
    group.append(
      el("button", { type: "button", title: `Save this chart as ${kind}`, onclick: act }, kind),
    );
  return group;
}
