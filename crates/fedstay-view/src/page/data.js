// What the server says, kept up to date: the list of runs, and every run that is shown.

async function ask(path) {
  const answer = await fetch(path, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`${answer.status}: ${(await answer.text()).trim()}`);
  return answer;
}

export async function listRuns() {
  return (await ask("/api/runs")).json();
}

// Several runs at once, each with its details and its series; `have` is what the page has of a
// single one.
async function readWhole(ids, have = "") {
  const bytes = await (await ask(`/api/whole?ids=${ids.join(",")}${have}`)).arrayBuffer();
  return parts(bytes);
}

// The format is described in whole.rs.
function parts(buffer) {
  const view = new DataView(buffer);
  const found = [];
  for (let at = 0; at < buffer.byteLength;) {
    const [told, series] = [view.getUint32(at, true), view.getUint32(at + 4, true)];
    at += 8;
    const detail = told
      ? JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, at, told)))
      : null;
    at += Math.ceil(told / 4) * 4;
    found.push({ detail, series: series ? decode(buffer, at) : null });
    at += Math.ceil(series / 4) * 4;
  }
  return found;
}

export async function readMap(id) {
  return (await ask(`/api/runs/${id}/landscape`)).json();
}

// One run: its details, and its series in columns that grow.
export class Run {
  constructor(id) {
    this.id = id;
    this.detail = null;
    this.series = null;
    this.part = null;
    this.busy = null;
    this.again = false;
  }

  // What charts draw: some of the rounds in detail, where they are looked at and known, else all.
  get drawn() {
    const { part, series } = this;
    return part && series && part.revision === series.revision && part.agents === series.agents
      ? part
      : series;
  }

  // Takes note of which rounds are looked at. Resolves to whether there is something else to draw.
  async look(range) {
    this.range = range;
    const wanted = range && this.series && this.series.bucket > 1 ? range.join("&high=") : null;
    if (wanted === null) {
      const had = this.part !== null;
      this.part = null;
      return had;
    }
    // A part of other rounds would leave a gap.
    if (this.part && (this.part.low > range[0] || this.part.high < range[1])) this.part = null;
    const bytes = await (await ask(`/api/runs/${this.id}/series?low=${wanted}`)).arrayBuffer();
    if (this.range !== range) return false;
    this.part = { ...decode(bytes), low: range[0], high: range[1] };
    return true;
  }

  // Asks for what is new; all calls made meanwhile are answered by one more request.
  update() {
    if (this.busy) {
      this.again = true;
      return this.busy;
    }
    this.busy = this.fetch().finally(() => {
      this.busy = null;
    });
    return this.busy;
  }

  async fetch() {
    do {
      this.again = false;
      const { series } = this;
      const have =
        series && series.count
          ? `&bucket=${series.bucket}&from=${series.count - 1}&revision=${series.revision}`
          : "";
      const [found] = await readWhole([this.id], have);
      this.take(found);
      if (this.range) await this.look(this.range);
    } while (this.again);
  }

  take({ detail, series }) {
    if (!detail) throw new Error("it is not there any more");
    if (series) this.series = merge(this.series, series);
    this.detail = detail;
    // The number that the series have for each state, by its name.
    this.codes = Object.fromEntries(detail.states.map(({ name }, code) => [name, code]));
  }
}

// Asks for runs of which nothing is known yet, all at once. Returns those that are not there.
export async function readFirst(runs) {
  const found = await readWhole(runs.map(({ id }) => id));
  return runs.filter((run, place) => {
    if (found[place]?.detail) run.take(found[place]);
    return !run.detail;
  });
}

// The format is described in series.rs.
function decode(buffer, start = 0) {
  const length = new DataView(buffer).getUint32(start, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, start + 4, length)));
  let at = start + Math.ceil((4 + length) / 4) * 4;
  const floats = () => {
    const column = new Float32Array(buffer, at, head.count);
    at += 4 * head.count;
    return column;
  };
  const pair = () => {
    const low = floats();
    return { low, high: head.bucket > 1 ? floats() : low };
  };
  const losses = Array.from({ length: head.agents }, pair);
  const received = Array.from({ length: head.received }, pair);
  const tracks = Object.fromEntries(head.tracks.map((name) => [name, pair()]));
  const states = Array.from({ length: head.agents }, () => {
    const column = new Uint8Array(buffer, at, head.count);
    at += head.count;
    return column;
  });
  return { ...head, first: Float64Array.from(head.first), losses, received, tracks, states };
}

// A track of a series; a run that does not have it knows nothing of it.
export function trackOf(series, name) {
  const { tracks, count } = series;
  if (tracks[name]) return tracks[name];
  const low = new Float32Array(count).fill(NaN);
  return { low, high: low };
}

function joined(a, b, from) {
  const whole = new b.constructor(from + b.length);
  whole.set(a.subarray(0, from));
  whole.set(b, from);
  return whole;
}

function merge(old, part) {
  if (!old || part.from === 0 || old.bucket !== part.bucket || old.revision !== part.revision)
    return part;
  const { from } = part;
  const pair = (a, b) => {
    const low = joined(a ? a.low : new Float32Array(from).fill(NaN), b.low, from);
    const high =
      part.bucket > 1 ? joined(a ? a.high : new Float32Array(from).fill(NaN), b.high, from) : low;
    return { low, high };
  };
  return {
    ...part,
    from: 0,
    count: from + part.count,
    first: joined(old.first, part.first, from),
    losses: part.losses.map((column, index) => pair(old.losses[index], column)),
    received: part.received.map((column, index) => pair(old.received[index], column)),
    tracks: Object.fromEntries(
      Object.entries(part.tracks).map(([name, column]) => [name, pair(old.tracks[name], column)]),
    ),
    states: part.states.map((column, index) =>
      joined(old.states[index] || new Uint8Array(from), column, from),
    ),
  };
}

// How long to wait before a stream that was refused is asked for again.
const AGAIN = 5000;

// The stream of events, while somebody looks: a browser has six connections for all its windows on
// one address, and a stream takes one. `link` is told whether it is connected.
export function listen(tell, link) {
  let source = null;
  const close = () => {
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    source = new EventSource("/api/events");
    source.addEventListener("open", () => {
      link(true);
      tell({ kind: "all" });
    });
    source.addEventListener("error", () => {
      link(false);
      // A browser asks again by itself, but not after it was refused.
      if (source?.readyState === EventSource.CLOSED)
        setTimeout(() => {
          if (!document.hidden) open();
        }, AGAIN);
    });
    source.addEventListener("message", (event) => tell(JSON.parse(event.data)));
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pagehide", close);
  addEventListener("pageshow", ({ persisted }) => {
    if (persisted && !document.hidden) open();
  });
  if (!document.hidden) open();
}
