// One colour, one pattern and one name for every run, whichever others are shown with it: its own,
// by its rule and name.

import { CHARTS } from "./charts.js";
import { Look } from "./theme.js";

const SPARE = CHARTS.spare;
const DASHES = [[], [3, 1.5], [1, 1.25], [5, 1.25, 1, 1.25]];

const NOBODY = { colour: "#767676", dash: [1, 1.25] };

let given = new Map();

const sign = ({ colour, dash }) => `${colour} ${dash}`;
const turned = (all, by) => [...all.slice(by % all.length), ...all.slice(0, by % all.length)];

// The looks of a run, the one it would have first: its rule's own colour in one of the patterns, by
// the name of its folder; then the other colours. Nothing of it depends on where the folder is or
// on other runs.
function wishes({ look, mark }) {
  const dashes = (colour) => turned(DASHES, mark).map((dash) => ({ colour, dash }));
  const others = turned(
    SPARE.filter((colour) => colour !== look.colour),
    mark,
  ).map((colour) => ({ colour, dash: DASHES[(mark >>> 3) % DASHES.length] }));
  const rest = turned(DASHES, mark >>> 3).flatMap((dash) =>
    turned(SPARE, mark).map((colour) => ({ colour, dash })),
  );
  return [...(look.own ? dashes(look.colour) : []), ...others, ...rest];
}

// Every run of the list has the first look it wishes for that no run has which began earlier: so a
// run that begins later changes no other's, and who opens the page later sees the same.
export function giveLooks(listings) {
  const order = (a, b) =>
    (a.began ?? Infinity) - (b.began ?? Infinity) ||
    a.name.localeCompare(b.name, "en", { numeric: true });
  given = new Map();
  const taken = new Set();
  // What cannot be read is never drawn, so it takes nobody's look.
  for (const listing of listings.filter(({ why }) => !why).sort(order)) {
    const all = wishes(listing);
    const look = all.find((one) => !taken.has(sign(one))) || all[0];
    taken.add(sign(look));
    given.set(listing.id, look);
  }
}

export function onScreen({ colour, dash }) {
  return new Look(
    colour,
    dash.map((length) => length * 2),
  );
}

export function lookOf(id) {
  return onScreen(given.get(id) || NOBODY);
}

// Looks for groups, by their place.
export function groupLook(place) {
  return onScreen({
    colour: SPARE[place % SPARE.length],
    dash: DASHES[Math.floor(place / SPARE.length) % DASHES.length],
  });
}
