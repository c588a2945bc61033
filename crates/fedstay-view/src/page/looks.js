// One colour, one pattern and one name for every run, whichever others are shown with it.

import { Look } from "./theme.js";

// No two of these are closer than Okabe and Ito's colours are.
const SPARE = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#767676", "#222222"];
const DASHES = [[], [3, 1.5], [1, 1.25], [5, 1.25, 1, 1.25]];

const given = new Map();
const taken = new Set();

const mark = ({ colour, dash }) => `${colour} ${dash}`;

function give(id, look) {
  taken.add(mark(look));
  given.set(id, look);
}

// The looks there are, those of a colour first that no run has yet.
function spares(first) {
  const all = [first, ...DASHES.flatMap((dash) => SPARE.map((colour) => ({ colour, dash })))].filter((one) => !taken.has(mark(one)));
  const used = new Set([...given.values()].map(({ colour }) => colour));
  return [...all.filter(({ colour }) => !used.has(colour)), ...all];
}

// Every run of the list gets its look once, in the order in which the runs began, so that a new run changes
// no other's: the first run of a rule has the rule's own, if it has one, others the next that nobody has.
export function giveLooks(listings) {
  const order = (a, b) => (a.began ?? Infinity) - (b.began ?? Infinity) || a.name.localeCompare(b.name, "en", { numeric: true });
  const waiting = listings.filter(({ id }) => !given.has(id)).sort(order);
  for (const { id, look } of waiting) if (look.own && !taken.has(mark(look))) give(id, look);
  for (const { id, look } of waiting.filter((one) => !given.has(one.id))) {
    give(id, spares(look)[0] || { colour: SPARE[given.size % SPARE.length], dash: DASHES[Math.floor(given.size / SPARE.length) % DASHES.length] });
  }
}

export function onScreen({ colour, dash }) {
  return new Look(colour, dash.map((length) => length * 2));
}

export function lookOf(id) {
  return onScreen(given.get(id) || { colour: SPARE[0], dash: [] });
}

// Looks for groups, by their place.
export function groupLook(place) {
  return onScreen({ colour: SPARE[place % SPARE.length], dash: DASHES[Math.floor(place / SPARE.length) % DASHES.length] });
}
