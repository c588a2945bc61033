// Numbers as text. All text reaches the page as text nodes, never as HTML.

export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export const NONE = "–";

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e5)) {
    const [head, tail] = value.toExponential(2).split("e");
    return `${head}·10${superscript(Number(tail))}`.replace("-", "−");
  }
  return value.toFixed(digits).replace("-", "−");
}

function superscript(value) {
  return String(value)
    .replace("-", "⁻")
    .replace(/\d/g, (digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]);
}

export function short(value) {
  if (!Number.isFinite(value)) return NONE;
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e6)) return number(value);
  return String(Number(value.toPrecision(3))).replace("-", "−");
}

// A number on an axis, where there is little room: 10⁻⁴ and not 1.00·10⁻⁴.
export function axisNumber(value) {
  const size = Math.abs(value);
  if (size === 0 || (size >= 1e-3 && size < 1e5)) return short(value);
  const [head, tail] = value.toExponential(2).split("e");
  const factor = String(Number(head)).replace("-", "−");
  return `${{ 1: "", "−1": "−" }[factor] ?? `${factor}·`}10${superscript(Number(tail))}`;
}

// A length of time in words.
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return NONE;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function percent(value) {
  return value === null || value === undefined || !Number.isFinite(value)
    ? NONE
    : `${(100 * value).toFixed(1)}%`;
}

export function several(count, one, many = `${one}s`) {
  return `${count} ${count === 1 ? one : many}`;
}

export function title(listing) {
  if (!listing.rule) return listing.name;
  return `${listing.rule} on ${listing.on}, seed ${listing.seed}`;
}

// What came of the run, or how it is going: the server has the words for it.
export function verdict(detail) {
  return detail.words;
}

// The clause as a sentence, with a capital and a full stop.
export function sentence(clause) {
  return clause ? `${clause[0].toUpperCase()}${clause.slice(1)}.` : "";
}
