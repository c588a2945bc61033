// Finding runs: words, and conditions on results and configuration keys, as in `q>0.5 rule=retain`.

const OPERATORS = {
  "=": (a, b) => same(a, b),
  "!=": (a, b) => !same(a, b),
  "<": (a, b) => numbers(a, b, (x, y) => x < y),
  "<=": (a, b) => numbers(a, b, (x, y) => x <= y),
  ">": (a, b) => numbers(a, b, (x, y) => x > y),
  ">=": (a, b) => numbers(a, b, (x, y) => x >= y),
  "~": (a, b) => String(a).toLowerCase().includes(b.toLowerCase()),
};
const TERM = /^([\p{L}\p{N}_.+ -]+?)(<=|>=|!=|=|<|>|~)(.+)$/u;

// A number as people write it: 0.5, 50% or 5e-1; NaN for anything else.
function asNumber(value) {
  if (typeof value === "number") return value;
  const text = String(value).trim();
  if (text === "") return NaN;
  return text.endsWith("%") ? Number(text.slice(0, -1)) / 100 : Number(text);
}

function same(a, b) {
  const [x, y] = [asNumber(a), asNumber(b)];
  if (x === x && y === y)
    return x === y || Math.abs(x - y) < 1e-12 * Math.max(Math.abs(x), Math.abs(y));
  return String(a).toLowerCase() === b.toLowerCase();
}

function numbers(a, b, holds) {
  const [x, y] = [asNumber(a), asNumber(b)];
  return x === x && y === y && holds(x, y);
}

// What a run can be found by besides its settings.
export function facts(listing) {
  const { delivered } = listing;
  const of = (name) =>
    delivered && delivered[name] !== null && delivered[name] !== undefined ? delivered[name] : null;
  return {
    name: listing.name,
    rule: listing.rule,
    data: listing.on,
    seed: listing.seed,
    agents: listing.agents,
    status: listing.status,
    verdict: listing.verdict,
    rounds: listing.rounds,
    left: of("left"),
    content: of("content"),
    ...Object.fromEntries(
      (listing.measures || []).flatMap(({ name }, place) => [
        [name, of(`${name}_mean`)],
        [`worst ${name}`, of(`${name}_worst`)],
        [place === 0 ? "population" : `population ${name}`, of(`${name}_population`)],
      ]),
    ),
    loss: of("loss_mean"),
    "worst loss": of("loss_worst"),
  };
}

// Everything a key may mean for a run: `q` is `partition.q` and `rule.q`, `rule` is `rule.kind`
// too.
export function valuesOf(listing, common, key) {
  const wanted = key.trim().toLowerCase();
  const found = [];
  for (const [name, value] of Object.entries(facts(listing))) {
    if (
      value !== null &&
      value !== undefined &&
      (name === wanted || name.replace(" ", "-") === wanted || name.replace(" ", ".") === wanted)
    )
      found.push(value);
  }
  for (const settings of [listing.settings, common]) {
    for (const [name, value] of Object.entries(settings || {})) {
      if (name === wanted || name.endsWith(`.${wanted}`) || name === `${wanted}.kind`)
        found.push(value);
    }
  }
  return found;
}

// The terms of a query; quotes keep blanks together, a leading − or - turns a term round.
export function parse(text) {
  const pieces = text.match(/(?:[^\s"]+|"[^"]*"?)+/g) || [];
  return pieces.map((piece) => {
    const plain = piece.replaceAll('"', "");
    const not = /^[-−]./.test(plain);
    const term = not ? plain.slice(1) : plain;
    const found = term.match(TERM);
    return found
      ? { not, key: found[1], holds: OPERATORS[found[2]], value: found[3] }
      : { not, word: term.toLowerCase() };
  });
}

function holds(term, listing, common) {
  if (term.word !== undefined) {
    const text =
      `${listing.name} ${listing.rule || ""} on ${listing.on || ""}, seed ${listing.seed} ` +
      `${listing.verdict || ""} ${listing.brief.text} ${listing.status}`;
    return text.toLowerCase().includes(term.word);
  }
  return valuesOf(listing, common, term.key).some((value) => term.holds(value, term.value));
}

export function matching(listings, common, text) {
  const terms = parse(text);
  return listings.filter((listing) =>
    terms.every((term) => holds(term, listing, common) !== term.not),
  );
}

// Why nothing was found: a key that no run has is the likeliest slip.
export function whyNothing(listings, common, text) {
  const unknown = parse(text)
    .filter(
      (term) =>
        term.key !== undefined &&
        !listings.some((listing) => valuesOf(listing, common, term.key).length),
    )
    .map((term) => term.key);
  if (unknown.length)
    return (
      `No run has the key ${unknown.join(", ")}. ` +
      "Keys are those of the configuration, such as rule, q, epsilon or seed."
    );
  return "No run matches. Try a name, a verdict, or a condition such as q>0.5 or rule=retain.";
}
