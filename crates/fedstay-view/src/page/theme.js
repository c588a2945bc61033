// Colours: those of the drawings (Okabe and Ito), with lighter ones of the same hue on a dark page.

import { CHARTS } from "./charts.js";

const ORDER = ["auto", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set();
// A choice is kept in a cookie, so that the server sends the page in that theme: its first frame
// waits for no script.
const COOKIE = "fedstay-theme";
// In seconds.
const YEAR = 31536000;
let chosen = document.cookie
  .split("; ")
  .find((one) => one.startsWith(`${COOKIE}=`))
  ?.slice(COOKIE.length + 1);
if (!ORDER.includes(chosen)) chosen = "auto";

// What is printed is on white paper.
let printing = false;

export function isDark() {
  return !printing && (chosen === "dark" || (chosen === "auto" && dark.matches));
}

for (const [name, on] of [
  ["beforeprint", true],
  ["afterprint", false],
]) {
  addEventListener(name, () => {
    printing = on;
    apply();
  });
}

function apply() {
  document.documentElement.dataset.theme = isDark() ? "dark" : "light";
  cache = null;
  for (const listener of listeners) listener();
}

export function onTheme(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function startTheme(button) {
  const label = () => {
    button.textContent = `theme: ${chosen}`;
    button.setAttribute("aria-label", `Colour theme: ${chosen}. Press to change.`);
  };
  button.addEventListener("click", () => {
    chosen = ORDER[(ORDER.indexOf(chosen) + 1) % ORDER.length];
    const age = chosen === "auto" ? 0 : YEAR;
    document.cookie = `${COOKIE}=${chosen}; path=/; max-age=${age}; samesite=lax`;
    label();
    apply();
  });
  dark.addEventListener("change", apply);
  label();
  apply();
}

let cache = null;

// The page's colours, from its style sheet, for canvases.
export function colours() {
  if (!cache) {
    const style = getComputedStyle(document.documentElement);
    const names = [
      "ink",
      "faint",
      "line",
      "grid",
      "paper",
      "card",
      "free",
      "near",
      "left",
      "fault",
      "accent",
      "good",
      "warn",
    ];
    cache = Object.fromEntries(
      names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
  }
  return cache;
}

// The colours of drawings are made for white; on a dark page they are mixed with white.
function lighter(hex) {
  // Black lines are for white paper: on a dark page they are light.
  if (hex === CHARTS.ink) return "#dddddd";
  const mix = (at) => Math.round(parseInt(hex.slice(at, at + 2), 16) * 0.62 + 255 * 0.38);
  return `rgb(${mix(1)}, ${mix(3)}, ${mix(5)})`;
}

// The colour and pattern of a line, in both themes. Signs have both as CSS variables and canvases
// ask for the one that fits, so a change of theme rebuilds nothing.
export class Look {
  constructor(hex, dash) {
    [this.light, this.dark, this.dash] = [hex, lighter(hex), dash];
  }

  get colour() {
    return isDark() ? this.dark : this.light;
  }
}

export function onPage(hex) {
  return isDark() ? lighter(hex) : hex;
}

// Agents look as in the drawings.
export function agentLook(index) {
  const { colour, dash } = CHARTS.agents[index % CHARTS.agents.length];
  return new Look(colour, dash);
}
