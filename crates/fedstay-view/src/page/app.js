// Which runs there are, which one is shown, and what is new.

import { CompareView } from "./compare.js";
import { Run, listRuns, listen } from "./data.js";
import { RunView } from "./run.js";
import { startTheme } from "./theme.js";
import { el, several, title, verdict } from "./words.js";

const byId = (id) => document.getElementById(id);
let listings = [];
let chosen = new Set();
let view = null;
let shown = "";
let runs = new Map();
const said = { text: "", at: 0 };

startTheme(byId("theme"));
// A token has done its work once its cookie is set; it need not stay in the history.
if (location.search.includes("token=")) history.replaceState(null, "", location.pathname + location.hash);

function wanted() {
  const [kind, ids] = location.hash.slice(1).split("=");
  const known = (ids || "").split(",").filter((id) => /^[0-9a-f]{16}$/.test(id));
  if (kind === "compare" && known.length) return { kind, ids: known };
  if (kind === "run" && known.length) return { kind, ids: known.slice(0, 1) };
  const first = listings.find((listing) => listing.status === "running") || listings[0];
  return first ? { kind: "run", ids: [first.id] } : { kind: "none", ids: [] };
}

function show() {
  const { kind, ids } = wanted();
  const key = `${kind}=${ids}`;
  if (key === shown) return;
  shown = key;
  if (view) view.remove();
  runs = new Map(ids.map((id) => [id, runs.get(id) || new Run(id)]));
  if (kind === "none") {
    view = null;
    byId("view").replaceChildren(el("p", { class: "words" }, "There is no run in these folders yet. One that begins will appear here by itself."));
    return;
  }
  view = kind === "compare" ? new CompareView([...runs.values()]) : new RunView(runs.get(ids[0]));
  byId("view").replaceChildren(view.element);
  if (kind === "compare") chosen = new Set(ids);
  drawList();
  for (const id of ids) refresh(id);
}

// Until when drawing pauses: a large run takes time to draw, and the page must answer meanwhile.
let rest = 0;
const waiting = new Set();

async function refresh(id) {
  const run = runs.get(id);
  if (!run) return;
  const wait = rest - performance.now();
  if (wait > 0) {
    if (!waiting.has(id)) setTimeout(() => { waiting.delete(id); refresh(id); }, wait);
    waiting.add(id);
    return;
  }
  const own = view;
  try {
    await run.update();
    if (own === view && view) {
      const since = performance.now();
      view.update();
      announce();
      performance.mark("fedstay-drawn");
      requestAnimationFrame(() => setTimeout(() => {
        rest = performance.now() + Math.min(4 * (performance.now() - since), 3000);
      }));
    }
  } catch (error) {
    byId("link").textContent = `cannot read a run: ${error.message}`;
  }
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

function item(listing) {
  const box = el("input", { type: "checkbox", "aria-label": `Choose ${listing.name} for a comparison` });
  box.checked = chosen.has(listing.id);
  box.addEventListener("change", () => {
    if (box.checked) chosen.add(listing.id);
    else chosen.delete(listing.id);
    compareButton();
  });
  const { text, tone } = listing.brief;
  const current = shown === `run=${listing.id}`;
  const about = listing.why ? listing.why : `${text} · round ${listing.rounds}${listing.status === "running" ? ` of ${listing.asked}` : ""}`;
  const link = el("a", { href: `#run=${listing.id}`, "aria-current": current ? "page" : null, title: title(listing) },
    el("span", { class: "name" }, listing.name), el("span", { class: "how", "data-status": listing.why ? "unreadable" : listing.status, "data-tone": listing.why ? "bad" : tone }, about));
  return el("li", {}, box, link);
}

function compareButton() {
  byId("compare").disabled = chosen.size < 2;
  byId("compare").textContent = chosen.size < 2 ? "Compare chosen runs" : `Compare ${chosen.size} runs`;
}

function drawList() {
  const find = byId("find").value.trim().toLowerCase();
  const some = listings.filter((listing) => !find || `${listing.name} ${title(listing)}`.toLowerCase().includes(find));
  const list = byId("runs");
  const key = JSON.stringify([some, [...chosen], shown]);
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  // What has the focus keeps it when the list is made again.
  const active = list.contains(document.activeElement) ? document.activeElement : null;
  const row = active ? [...list.children].indexOf(active.closest("li")) : -1;
  const tag = active ? active.tagName.toLowerCase() : "";
  const most = 300;
  list.replaceChildren(...some.slice(0, most).map(item));
  if (some.length > most) list.append(el("li", { class: "faint" }, `… and ${some.length - most} more: find one by its name`));
  if (row >= 0 && list.children[row]) list.children[row].querySelector(tag)?.focus();
  byId("count").textContent = listings.length ? `(${listings.length})` : "";
  compareButton();
}

async function refreshList() {
  try {
    ({ runs: listings } = await listRuns());
    listings.sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true }));
    show();
    drawList();
  } catch (error) {
    byId("link").textContent = `cannot read the list of runs: ${error.message}`;
  }
}

byId("find").addEventListener("input", drawList);
byId("compare").addEventListener("click", () => {
  location.hash = `compare=${[...chosen].join(",")}`;
});
window.addEventListener("hashchange", () => {
  show();
  drawList();
  view?.heading?.focus({ preventScroll: true });
  scrollTo(0, 0);
});

await refreshList();
let first = true;
listen((news) => {
  if (news.kind === "run") refresh(news.id);
  else if (news.kind === "runs") refreshList();
  else if (!first) {
    refreshList();
    for (const id of runs.keys()) refresh(id);
  }
  first = false;
}, (up) => {
  byId("link").textContent = up ? `live · ${several(listings.length, "run")}` : "not connected: is fedstay view still running?";
  byId("link").dataset.up = String(up);
});
