// The lines of a comparison: one per run, or one per group of runs with the band they span.

import { trackOf } from "./data.js";
import { lastKnown } from "./delivered.js";
import { groupLook, lookOf, onScreen } from "./looks.js";
import { isShare } from "./measures.js";
import { valuesOf } from "./query.js";
import { spread } from "./results.js";
import { NONE, short } from "./words.js";

// The rounds of a run and its values there. Where some rounds are looked at closely every one of
// them is there, between what is known of the others, so that lines enter and leave the chart where
// they should.
function columnOf(run, track) {
  const { series, drawn } = run;
  const whole = { first: series.first, bucket: series.bucket, column: trackOf(series, track) };
  if (drawn === series || !drawn.count || !whole.column) return whole;
  const [from, to] = [drawn.first[0], drawn.first[drawn.count - 1] + drawn.bucket - 1];
  const { first, bucket } = series;
  let before = 0;
  while (before < first.length && first[before] + bucket - 1 < from) before += 1;
  let after = before;
  while (after < first.length && first[after] <= to) after += 1;
  const middle = (at) => at + (bucket - 1) / 2;
  const close = Float64Array.from(drawn.first, (at) => at + (drawn.bucket - 1) / 2);
  const join = (a, b) => Float64Array.from([...a.subarray(0, before), ...b, ...a.subarray(after)]);
  const { low, high } = trackOf(drawn, track);
  return {
    first: join(first.map(middle), close),
    bucket: 1,
    column: { low: join(whole.column.low, low), high: join(whole.column.high, high) },
  };
}

// A value of a run's track at a round: the last known one or, once it is over, what it delivered.
function valueAt(run, { first, column }, track, round) {
  const { detail } = run;
  const delivered = detail.delivered && detail.delivered[track];
  if (detail.status === "finished" && round >= detail.round && Number.isFinite(delivered))
    return delivered;
  if (!column) return NaN;
  let [low, high] = [0, first.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (first[middle] <= round) low = middle + 1;
    else high = middle;
  }
  const last = lastKnown(column, low);
  return last >= 0 ? column.low[last] : NaN;
}

export class RunLine {
  constructor(run) {
    this.run = run;
    this.runs = [run];
    this.key = run.id;
    this.name = run.detail.listing.name;
    this.look = lookOf(run.id);
    this.end = run.detail.round || 1;
    this.over = run.detail.status === "finished";
    this.made = new Map();
  }

  column(track) {
    if (!this.made.has(track)) this.made.set(track, { ...columnOf(this.run, track), band: null });
    return this.made.get(track);
  }

  delivered(track) {
    const { delivered } = this.run.detail;
    return delivered && Number.isFinite(delivered[track]) ? delivered[track] : NaN;
  }

  at(track, round) {
    return valueAt(this.run, this.column(track), track, round);
  }
}

export class GroupLine {
  constructor(name, runs, look, how) {
    this.runs = runs;
    this.key = name;
    this.name = name;
    this.look = look;
    this.how = how;
    this.end = Math.max(...runs.map((run) => run.detail.round || 1));
    this.over = runs.every((run) => run.detail.status === "finished");
    this.made = new Map();
    this.each = runs.map((run) => new RunLine(run));
  }

  // The rounds in which something new is known of some run: a value, or its end.
  rounds(track) {
    const rounds = new Set();
    for (const line of this.each) {
      const { first, bucket, column } = line.column(track);
      if (column)
        first.forEach((round, i) => {
          if (column.low[i] === column.low[i]) rounds.add(round + bucket - 1);
        });
      if (line.over && Number.isFinite(line.delivered(track))) rounds.add(line.run.detail.round);
    }
    return Float64Array.from([...rounds].sort((a, b) => a - b));
  }

  // The mean of the runs in these rounds; one that has ended stays at what it delivered.
  column(track) {
    if (this.made.has(track)) return this.made.get(track);
    const [first, bucket] = [this.rounds(track), 1];
    const [mean, low, high] = Array.from({ length: 3 }, () =>
      new Float64Array(first.length).fill(NaN),
    );
    for (let i = 0; i < first.length; i += 1) {
      const found = spread(this.each.map((line) => line.at(track, first[i])));
      if (!found) continue;
      mean[i] = found.mean;
      [low[i], high[i]] = this.ends(found, track);
    }
    const made = { first, bucket, column: { low: mean, high: mean }, band: { low, high } };
    this.made.set(track, made);
    return made;
  }

  // Between which values a track can be.
  bounds(track) {
    const measures = this.runs.flatMap((run) => run.detail.measures);
    const measure = measures.find(({ name }) => track.startsWith(`${name}_`));
    if (measure) return isShare(measure) ? [0, 1] : [-Infinity, Infinity];
    return [track.startsWith("loss") ? -Infinity : 0, Infinity];
  }

  // The ends of the band: the least and the most, or one standard deviation either way, within what
  // there can be.
  ends({ mean, deviation, low, high }, track) {
    if (this.how !== "sd") return [low, high];
    const [least, most] = this.bounds(track);
    return [Math.max(least, mean - (deviation || 0)), Math.min(most, mean + (deviation || 0))];
  }

  delivered(track) {
    if (!this.over) return NaN;
    const found = spread(this.each.map((line) => line.delivered(track)));
    return found ? found.mean : NaN;
  }

  at(track, round) {
    const found = spread(this.each.map((line) => line.at(track, round)));
    return found ? found.mean : NaN;
  }

  bandAt(track, round) {
    const found = spread(this.each.map((line) => line.at(track, round)));
    return found ? this.ends(found, track) : null;
  }
}

// What a run is grouped under: its value of a key, with the key where the value alone says little.
function groupOf(run, key) {
  const { listing, settings } = run.detail;
  const [value] = valuesOf({ ...listing, settings: settings || listing.settings }, {}, key);
  if (value === undefined) return `${key} ${NONE}`;
  return typeof value === "number"
    ? `${key} = ${short(value)}`
    : key === "rule"
      ? String(value)
      : `${key} = ${value}`;
}

export function linesOf(runs, key, how) {
  if (!key) return runs.map((run) => new RunLine(run));
  const groups = new Map();
  for (const run of runs) {
    const name = groupOf(run, key);
    groups.set(name, [...(groups.get(name) || []), run]);
  }
  const names = [...groups.keys()].sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  // Of a rule the look it has in every drawing.
  const look = (name, place) =>
    key === "rule" ? onScreen(groups.get(name)[0].detail.listing.look) : groupLook(place);
  return names.map((name, place) => new GroupLine(name, groups.get(name), look(name, place), how));
}
