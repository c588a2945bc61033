// What is shown and how, in the address behind the #: a link to the page restores all of it.

// These belong to the list of runs and stay when another run is opened.
const OF_THE_LIST = ["find", "sort"];
const VIEWS = ["run", "compare", "all"];

let state = parse();

function parse() {
  return new Map(new URLSearchParams(location.hash.slice(1)));
}

function written(map) {
  const plain = (text) =>
    encodeURIComponent(text)
      .replace(/%2C/g, ",")
      .replace(/%3A/g, ":")
      .replace(/%3D/g, "=")
      .replace(/%3E/g, ">")
      .replace(/%3C/g, "<");
  const parts = [...map].map(([key, value]) => `${key}=${plain(value)}`);
  return parts.length ? `#${parts.join("&")}` : "";
}

export function read(key) {
  return state.has(key) ? state.get(key) : null;
}

// Whether a choice that is either on or off is on.
export function isOn(key) {
  return read(key) === "1";
}

// Takes note of a choice without a new entry in the history; null takes it back.
export function write(key, value) {
  if (value === null || value === "" || value === false) state.delete(key);
  else state.set(key, value === true ? "1" : String(value));
  history.replaceState(null, "", location.pathname + written(state));
}

// The address of another view, with the list as it is.
export function linkTo(view, ids) {
  const next = new Map([[view, ids]]);
  for (const key of OF_THE_LIST) if (state.has(key)) next.set(key, state.get(key));
  return written(next);
}

// Which view the address asks for.
export function wantedView() {
  for (const kind of VIEWS) {
    if (!state.has(kind)) continue;
    if (kind === "all") return { kind, ids: [] };
    const ids = state
      .get(kind)
      .split(",")
      .filter((id) => id !== "");
    return { kind, ids: kind === "run" ? ids.slice(0, 1) : ids };
  }
  return null;
}

// Called after somebody followed a link or went back. Returns whether anything is different.
export function reread() {
  const before = written(state);
  state = parse();
  return written(state) !== before;
}
