// Which runs there are, which view is shown, and what is new.

import { AllView } from "./all.js";
import { CompareView } from "./compare.js";
import { Run, listRuns, listen, readFirst } from "./data.js";
import { RunList, foldOnSmallScreens } from "./list.js";
import { giveLooks } from "./looks.js";
import { RunView } from "./run.js";
import { reread, wantedView } from "./state.js";
import { startTheme } from "./theme.js";
import { el, several, verdict } from "./words.js";

const byId = (id) => document.getElementById(id);
let view = null;
let shown = "";
// The run that was shown, without a link to it, until it was removed.
let gone = null;
let runs = new Map();
const said = { text: "", at: 0 };

startTheme(byId("theme"));
foldOnSmallScreens();
// A token has done its work once its cookie is set; it need not stay in the history.
if (location.search.includes("token="))
  history.replaceState(null, "", location.pathname + location.hash);

const list = new RunList({
  current: () => (shown.startsWith("run=") ? shown.slice(4) : null),
  // The table of all runs follows the search.
  relist: () => {
    if (view instanceof AllView) view.update();
  },
});

function wanted() {
  const asked = wantedView();
  if (asked) {
    // What a link names and nobody has is said, and not replaced by something else.
    const ids = asked.ids.filter((id) => list.listings.some((listing) => listing.id === id));
    return asked.kind === "all" || ids.length
      ? { ...asked, ids, missing: asked.ids.length - ids.length }
      : { kind: "unknown", ids: [], asked: asked.ids };
  }
  // Readers stay where they are, also when what they read is removed; it is shown again if
  // it comes back.
  const here = (wanted) => list.listings.find(({ id }) => id === wanted);
  const before = gone || (shown.startsWith("run=") ? shown.slice(4) : null);
  gone = before && !here(before) ? before : null;
  if (gone) return { kind: "unknown", ids: [], asked: [gone] };
  // At first the server says which, and has read it already.
  const now = here(before) || here(list.first);
  return now ? { kind: "run", ids: [now.id] } : { kind: "none", ids: [] };
}

// No run at all: what to type to have one.
function nothing() {
  return [
    el("h1", { tabindex: "-1" }, "No runs yet"),
    el(
      "p",
      { class: "words" },
      "There is no run in these folders yet. One that begins appears here by itself.",
    ),
    el(
      "p",
      { class: "next" },
      "To begin one: ",
      el("code", {}, "fedstay run --out DIR/first"),
      " with the folder that fedstay view was given as DIR.",
    ),
  ];
}

// A link to a run that is not here, or one that was shown and is not here any more.
function unknown(ids) {
  const why = gone
    ? "The run that was shown is not in these folders any more."
    : ids.length > 1
      ? "None of the runs of this link is in these folders."
      : "The run of this link is not in these folders.";
  return [
    el("h1", { tabindex: "-1" }, "No such run"),
    el("p", { class: "words" }, why),
    el(
      "p",
      { class: "next" },
      "It may have been moved or removed, or the link is of a page about other folders. " +
        "To see those: ",
      el("code", {}, "fedstay view DIR"),
      " with the folder of that run; or choose one of the runs in the list.",
    ),
  ];
}

function show(again) {
  const { kind, ids, missing, asked } = wanted();
  const key = `${kind}=${ids}`;
  if (key === shown && !again) return;
  shown = key;
  if (view) view.remove();
  runs = new Map(ids.map((id) => [id, runs.get(id) || new Run(id)]));
  if (kind === "none" || kind === "unknown") {
    view = null;
    document.title = "fedstay";
    byId("view").replaceChildren(
      el("div", { class: "told" }, ...(kind === "none" ? nothing() : unknown(asked))),
    );
    list.draw();
    return;
  }
  view =
    kind === "compare"
      ? new CompareView([...runs.values()])
      : kind === "all"
        ? new AllView(list)
        : new RunView(runs.get(ids[0]));
  if (kind === "compare") view.missing = missing;
  view.element.classList.toggle("filling", kind !== "all");
  byId("view").replaceChildren(view.element);
  if (kind === "compare") list.chosen = new Set(ids);
  if (kind === "all" || again) refill(view);
  list.draw();
  fetchAll(ids);
}

// How many runs of a comparison are asked for at once, and by how many requests at a time.
const [BATCH, REQUESTS] = [16, 3];

// A comparison asks for what it does not have yet, in the order in which the runs are listed.
async function fetchAll(ids) {
  const own = view;
  const all = ids.map((id) => runs.get(id));
  const known = all.filter((run) => run.detail || all.length === 1);
  const others = all.filter((run) => !known.includes(run));
  known.forEach(({ id }) => refresh(id));
  const one = async () => {
    while (others.length && own === view) {
      const some = others.splice(0, BATCH);
      const missing = await readFirst(some);
      if (missing.length)
        byId("link").textContent = `${several(missing.length, "run")} cannot be read`;
      await Promise.all(some.map((run) => run.range && run.look(run.range).catch(() => {})));
      if (own === view) redraw(own);
    }
  };
  await Promise.all(Array.from({ length: REQUESTS }, () => one().catch(unreadable)));
}

function unreadable(error) {
  byId("link").textContent = `cannot read a run: ${error.message}`;
}

// Until when drawing pauses: a large run takes time to draw, and the page must answer meanwhile.
let rest = 0;
let drawing = 0;
const waiting = new Set();

async function refresh(id) {
  const run = runs.get(id);
  if (!run) return;
  const wait = rest - performance.now();
  // The first time there is nothing to see yet, so nothing is put off.
  if (wait > 0 && run.series) {
    if (!waiting.has(id))
      setTimeout(() => {
        waiting.delete(id);
        refresh(id);
      }, wait);
    waiting.add(id);
    return;
  }
  const own = view;
  try {
    await run.update();
    if (own === view && view) redraw(own);
  } catch (error) {
    unreadable(error);
  }
}

function refill(own) {
  own.update();
  if ([...runs.values()].some((run) => run.detail)) own.element.classList.remove("filling");
}

// Draws once, however many runs have news, and then lets the page rest.
function redraw(own) {
  // Once the last run of a comparison has come there is nothing to wait for.
  const complete = !own.complete && [...runs.values()].every((run) => run.detail);
  own.complete ||= complete;
  if (drawing && !complete) return;
  clearTimeout(drawing);
  const wait = complete ? 0 : Math.max(0, rest - performance.now());
  drawing = setTimeout(
    () => {
      drawing = 0;
      if (own !== view) return;
      const since = performance.now();
      refill(view);
      announce();
      performance.mark("fedstay-drawn");
      requestAnimationFrame(() =>
        setTimeout(() => {
          // Of a comparison that is being read, nobody waits for the next part long.
          rest =
            performance.now() +
            Math.min(4 * (performance.now() - since), runs.size > 1 ? 1000 : 3000);
        }),
      );
    },
    runs.size > 1 ? wait : 0,
  );
}

// Tells a screen reader what came of the run, but not with every round.
function announce() {
  if (runs.size !== 1) return;
  const [run] = runs.values();
  if (!run.detail) return;
  const { head, text } = verdict(run.detail);
  const words = `${head}. ${text}`;
  if (words === said.text || performance.now() - said.at < 4000) return;
  [said.text, said.at] = [words, performance.now()];
  byId("said").textContent = words;
}

async function refreshList() {
  try {
    list.set(await listRuns());
    giveLooks(list.listings);
    show();
    list.draw();
    document.documentElement.dataset.listed = "";
    if (view instanceof AllView) view.update();
  } catch (error) {
    byId("link").textContent = `cannot read the list of runs: ${error.message}`;
  }
}

// The address says what is shown, so the link only moves the focus.
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
window.addEventListener("hashchange", () => {
  if (!reread()) return;
  gone = null;
  list.restore();
  show(true);
  list.draw();
  view?.heading?.focus({ preventScroll: true });
  scrollTo(0, 0);
});

await refreshList();
let first = true;
listen(
  (news) => {
    if (news.kind === "run") refresh(news.id);
    else if (news.kind === "runs") refreshList();
    else if (first) {
      // A run that began between the list and the stream is in neither; there is no hurry to find
      // it.
      setTimeout(refreshList, 500);
    } else {
      refreshList();
      for (const id of runs.keys()) refresh(id);
    }
    first = false;
  },
  (up) => {
    byId("link").textContent = up ? "live" : "not connected: is fedstay view still running?";
    byId("link").dataset.up = String(up);
  },
);
