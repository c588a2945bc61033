// A context that draws like a canvas's and becomes an SVG file: only what our charts use.

const fine = (value) => String(Math.round(value * 100) / 100);
const escaped = (text) =>
  String(text)
    .replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[sign])
    .replace(/[^\P{Cc}\t]/gu, "");

// An element, with the attributes that are not null, around markup.
function element(kind, attributes, inside) {
  const said = Object.entries(attributes)
    .filter(([, value]) => value !== null)
    .map(
      ([name, value]) => ` ${name}="${typeof value === "number" ? fine(value) : escaped(value)}"`,
    )
    .join("");
  return inside === undefined ? `<${kind}${said}/>` : `<${kind}${said}>${inside}</${kind}>`;
}

class SvgPath {
  constructor() {
    this.d = "";
  }

  moveTo(x, y) {
    this.d += `M${fine(x)} ${fine(y)}`;
  }

  lineTo(x, y) {
    this.d += `${this.d ? "L" : "M"}${fine(x)} ${fine(y)}`;
  }

  // Only whole circles are drawn.
  arc(x, y, radius) {
    const r = fine(radius);
    const half = (by) => `a${r} ${r} 0 1 0 ${fine(by)} 0`;
    this.d += `M${fine(x - radius)} ${fine(y)}${half(2 * radius)}${half(-2 * radius)}`;
  }

  rect(x, y, width, height) {
    this.d += `M${fine(x)} ${fine(y)}h${fine(width)}v${fine(height)}h${fine(-width)}z`;
  }

  closePath() {
    this.d += "z";
  }
}

const PLAIN = {
  strokeStyle: "#000",
  fillStyle: "#000",
  lineWidth: 1,
  globalAlpha: 1,
  font: "12px sans-serif",
  textAlign: "left",
  textBaseline: "alphabetic",
  lineJoin: "round",
  dash: [],
  groups: 0,
};

export class SvgContext {
  constructor(width, height, title) {
    [this.width, this.height, this.title] = [width, height, title];
    Object.assign(this, PLAIN);
    this.stack = [];
    this.parts = [];
    this.clips = [];
    this.current = new SvgPath();
    this.ruler = document.createElement("canvas").getContext("2d");
  }

  newPath() {
    return new SvgPath();
  }

  save() {
    this.stack.push(Object.fromEntries(Object.keys(PLAIN).map((key) => [key, this[key]])));
    this.groups = 0;
  }

  restore() {
    this.parts.push("</g>".repeat(this.groups));
    Object.assign(this, this.stack.pop());
  }

  translate(x, y) {
    this.parts.push(`<g transform="translate(${fine(x)} ${fine(y)})">`);
    this.groups += 1;
  }

  beginPath() {
    this.current = new SvgPath();
  }

  moveTo(x, y) {
    this.current.moveTo(x, y);
  }

  lineTo(x, y) {
    this.current.lineTo(x, y);
  }

  arc(x, y, radius) {
    this.current.arc(x, y, radius);
  }

  rect(x, y, width, height) {
    this.current.rect(x, y, width, height);
  }

  closePath() {
    this.current.closePath();
  }

  setLineDash(dash) {
    this.dash = [...dash];
  }

  clip(path = this.current) {
    const id = `clip${this.clips.length}`;
    this.clips.push(`<clipPath id="${id}"><path d="${path.d}"/></clipPath>`);
    // A clip inside another one is inside its group already.
    this.parts.push(`<g clip-path="url(#${id})">`);
    this.groups += 1;
  }

  put(kind, attributes, text) {
    const opacity = this.globalAlpha < 1 ? this.globalAlpha : null;
    this.parts.push(element(kind, { ...attributes, opacity }, text));
  }

  stroke(path = this.current) {
    if (!path.d) return;
    this.put("path", {
      d: path.d,
      fill: "none",
      stroke: this.strokeStyle,
      "stroke-width": this.lineWidth,
      "stroke-linejoin": "round",
      "stroke-dasharray": this.dash.length ? this.dash.map(fine).join(" ") : null,
    });
  }

  fill(path = this.current) {
    if (path.d) this.put("path", { d: path.d, fill: this.fillStyle });
  }

  fillRect(x, y, width, height) {
    const size = { width: Math.max(0, width), height: Math.max(0, height) };
    this.put("rect", { x, y, ...size, fill: this.fillStyle });
  }

  strokeRect(x, y, width, height) {
    const path = new SvgPath();
    path.rect(x, y, width, height);
    this.stroke(path);
  }

  measureText(text) {
    this.ruler.font = this.font;
    return this.ruler.measureText(text);
  }

  fillText(text, x, y) {
    const size = Number((this.font.match(/([\d.]+)px/) || [0, 12])[1]);
    const drop = { top: 0.8, middle: 0.35, bottom: -0.2 }[this.textBaseline] || 0;
    const anchor = { right: "end", center: "middle" }[this.textAlign] || "start";
    const attributes = {
      x,
      y: y + drop * size,
      "font-size": String(size),
      "font-weight": /^\d{3} /.test(this.font) ? this.font.slice(0, 3) : null,
      "text-anchor": anchor,
      fill: this.fillStyle,
    };
    this.put("text", attributes, escaped(text));
  }

  toString() {
    const [width, height] = [fine(this.width), fine(this.height)];
    const attributes = {
      xmlns: "http://www.w3.org/2000/svg",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": this.title,
      "font-family": "system-ui, sans-serif",
    };
    const head = element("title", {}, escaped(this.title));
    const clips = element("defs", {}, this.clips.join(""));
    return `${element("svg", attributes, head + clips + this.parts.join(""))}\n`;
  }
}

// A path for a context of either kind.
export function newPath(context) {
  return context.newPath ? context.newPath() : new Path2D();
}
