// The signs of a legend: what stands before a name, beside a value, in a table.

import { el } from "./words.js";

export function swatch(kind) {
  return el("span", { class: `swatch ${kind}`, "aria-hidden": "true" });
}

// The sign of a line in its colour, whichever theme there is.
export function lineSign(look) {
  const sign = swatch("dash look");
  sign.style.setProperty("--light", look.light);
  sign.style.setProperty("--dark", look.dark);
  return sign;
}

// The same with its very pattern.
export function lineSwatch(look) {
  const sign = lineSign(look);
  if (look.dash.length) {
    let at = 0;
    const stops = look.dash.map(
      (length, i) => `${i % 2 ? "transparent" : "#000"} ${at}px ${(at += length)}px`,
    );
    sign.style.maskImage = `repeating-linear-gradient(to right, ${stops.join(", ")})`;
  }
  return sign;
}
