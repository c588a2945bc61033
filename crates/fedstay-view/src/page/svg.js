// A context that draws like a canvas's and becomes an SVG file: only what our charts use.

const fine = (value) => String(Math.round(value * 100) / 100);
const escaped = (text) => String(text).replace(/[&<>"]/g, (sign) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" }[sign])).replace(/[^\P{Cc}\t]/gu, "");

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
    this.d += `M${fine(x - radius)} ${fine(y)}a${r} ${r} 0 1 0 ${fine(2 * radius)} 0a${r} ${r} 0 1 0 ${fine(-2 * radius)} 0`;
  }

  rect(x, y, width, height) {
    this.d += `M${fine(x)} ${fine(y)}h${fine(width)}v${fine(height)}h${fine(-width)}z`;
  }

  closePath() {
    this.d += "z";
  }
}

const PLAIN = { strokeStyle: "#000", fillStyle: "#000", lineWidth: 1, globalAlpha: 1, font: "12px sans-serif", textAlign: "left", textBaseline: "alphabetic", lineJoin: "round", dash: [], groups: 0 };

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

  moveTo(x, y) { this.current.moveTo(x, y); }

  lineTo(x, y) { this.current.lineTo(x, y); }

  arc(x, y, radius) { this.current.arc(x, y, radius); }

  rect(x, y, width, height) { this.current.rect(x, y, width, height); }

  closePath() { this.current.closePath(); }

  setLineDash(dash) { this.dash = [...dash]; }

  clip(path = this.current) {
    const id = `clip${this.clips.length}`;
    this.clips.push(`<clipPath id="${id}"><path d="${path.d}"/></clipPath>`);
    // A clip inside another one is inside its group already.
    this.parts.push(`<g clip-path="url(#${id})">`);
    this.groups += 1;
  }

  put(kind, attributes) {
    this.parts.push(`<${kind} ${attributes}${this.globalAlpha < 1 ? ` opacity="${fine(this.globalAlpha)}"` : ""}/>`);
  }

  stroke(path = this.current) {
    if (!path.d) return;
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map(fine).join(" ")}"` : "";
    this.put("path", `d="${path.d}" fill="none" stroke="${escaped(this.strokeStyle)}" stroke-width="${fine(this.lineWidth)}" stroke-linejoin="round"${dash}`);
  }

  fill(path = this.current) {
    if (path.d) this.put("path", `d="${path.d}" fill="${escaped(this.fillStyle)}"`);
  }

  fillRect(x, y, width, height) {
    this.put("rect", `x="${fine(x)}" y="${fine(y)}" width="${fine(Math.max(0, width))}" height="${fine(Math.max(0, height))}" fill="${escaped(this.fillStyle)}"`);
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
    const weight = /^\d{3} /.test(this.font) ? ` font-weight="${this.font.slice(0, 3)}"` : "";
    const opacity = this.globalAlpha < 1 ? ` opacity="${fine(this.globalAlpha)}"` : "";
    this.parts.push(`<text x="${fine(x)}" y="${fine(y + drop * size)}" font-size="${size}"${weight} text-anchor="${anchor}" fill="${escaped(this.fillStyle)}"${opacity}>${escaped(text)}</text>`);
  }

  toString() {
    const title = escaped(this.title);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${fine(this.width)}" height="${fine(this.height)}" viewBox="0 0 ${fine(this.width)} ${fine(this.height)}" role="img" aria-label="${title}" font-family="system-ui, sans-serif"><title>${title}</title><defs>${this.clips.join("")}</defs>${this.parts.join("")}</svg>\n`;
  }
}

// A path for a context of either kind.
export function newPath(context) {
  return context.newPath ? context.newPath() : new Path2D();
}
