// The list of runs: found by words and conditions, sorted, chosen for a comparison.

import { lookOf } from "./looks.js";
import { facts, matching, whyNothing } from "./query.js";
import { lineSwatch } from "./sign.js";
import { linkTo, read, write } from "./state.js";
import { el, several, title } from "./words.js";

const byId = (id) => document.getElementById(id);
// More are only counted: nobody reads on.
const MOST = 300;

const SORTS = [
  ["name", "name"],
  ["newest", "newest first"],
  ["verdict", "verdict"],
  ["rounds", "rounds"],
  ["accuracy", "mean accuracy"],
  ["worst accuracy", "worst accuracy"],
  ["loss", "mean loss"],
];

function byName(a, b) {
  return a.name.localeCompare(b.name, "en", { numeric: true });
}

// Sorts by a fact or a setting; runs without it come last.
function sorted(listings, key) {
  const value = (listing) => {
    if (key === "newest") return listing.began === null ? null : -listing.began;
    const fact = facts(listing)[key];
    return fact !== null && fact !== undefined ? fact : listing.settings[key];
  };
  const compare = (a, b) => {
    const [x, y] = [value(a), value(b)];
    const [none, empty] = [x === null || x === undefined, y === null || y === undefined];
    if (none || empty) return none - empty;
    return typeof x === "number" && typeof y === "number"
      ? x - y
      : String(x).localeCompare(String(y), "en", { numeric: true });
  };
  return key === "name" ? listings : [...listings].sort((a, b) => compare(a, b) || byName(a, b));
}

// On a small screen the list opens when it is wanted.
export function foldOnSmallScreens() {
  const small = matchMedia("(max-width: 860px)");
  const fold = () => {
    if (byId("fold").open === small.matches) byId("fold").open = !small.matches;
  };
  small.addEventListener("change", fold);
  fold();
}

export class RunList {
  constructor(open) {
    this.open = open;
    this.chosen = new Set();
    this.listings = [];
    this.common = {};
    this.find = byId("find");
    this.sort = byId("sort");
    this.list = byId("runs");
    this.find.value = read("find") || "";
    this.find.addEventListener("input", () => {
      write("find", this.find.value.trim());
      this.draw();
      this.open.relist();
    });
    this.sort.addEventListener("change", () => {
      write("sort", this.sort.value === "name" ? null : this.sort.value);
      this.draw();
    });
    byId("compare").addEventListener("click", () => {
      location.hash = linkTo("compare", [...this.chosen].join(","));
    });
    byId("choose").addEventListener("click", () => {
      const ids = this.found.map(({ id }) => id);
      const all = ids.every((id) => this.chosen.has(id));
      for (const id of ids) this.chosen[all ? "delete" : "add"](id);
      this.draw();
      this.open.relist();
    });
  }

  set({ runs, common, first }) {
    this.common = common;
    this.first = first;
    this.listings = runs.sort(byName);
    const keys = [...new Set(runs.flatMap((listing) => Object.keys(listing.settings)))]
      .sort()
      .slice(0, 40);
    const options = [...SORTS, ...keys.map((key) => [key, key])];
    const wanted = JSON.stringify(options);
    if (this.sort.dataset.wanted !== wanted) {
      this.sort.dataset.wanted = wanted;
      this.sort.replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
      this.sort.value = options.some(([value]) => value === read("sort")) ? read("sort") : "name";
    }
  }

  // What the page was asked for by a link or by going back.
  restore() {
    this.find.value = read("find") || "";
    this.sort.value = read("sort") || "name";
  }

  get found() {
    return sorted(matching(this.listings, this.common, this.find.value), this.sort.value || "name");
  }

  item(listing) {
    const box = el("input", {
      type: "checkbox",
      "aria-label": `Choose ${listing.name} for a comparison`,
    });
    box.checked = this.chosen.has(listing.id);
    box.addEventListener("change", () => {
      this.chosen[box.checked ? "add" : "delete"](listing.id);
      this.buttons();
      this.open.relist();
    });
    const { text, tone } = listing.brief;
    const rule = listing.rule && listing.rule !== listing.name ? `${listing.rule} · ` : "";
    const about = listing.why
      ? `${text}: ${listing.why}`
      : `${rule}${text} · round ${listing.rounds}` +
        (listing.status === "running" ? ` of ${listing.asked}` : "");
    const link = el(
      "a",
      {
        href: linkTo("run", listing.id),
        "aria-current": this.open.current() === listing.id ? "page" : null,
        title: title(listing),
      },
      el("span", { class: "name" }, lineSwatch(lookOf(listing.id)), listing.name),
      el(
        "span",
        {
          class: "how",
          "data-status": listing.why ? "unreadable" : listing.status,
          "data-tone": tone,
        },
        about,
      ),
    );
    return el("li", {}, box, link);
  }

  buttons() {
    const { chosen } = this;
    byId("compare").disabled = chosen.size < 2;
    byId("compare").textContent =
      chosen.size < 2 ? "Compare chosen runs" : `Compare ${chosen.size} runs`;
    const { found } = this;
    const all = found.length > 0 && found.every(({ id }) => chosen.has(id));
    byId("choose").disabled = found.length === 0;
    byId("choose").textContent = all ? "Choose none" : `Choose all ${found.length}`;
    byId("all").href = linkTo("all", "runs");
  }

  draw() {
    const { found, list } = this;
    const key = JSON.stringify([
      found,
      [...this.chosen],
      this.open.current(),
      read("find"),
      read("sort"),
    ]);
    if (list.dataset.key === key) return;
    list.dataset.key = key;
    // What has the focus keeps it when the list is made again.
    const active = list.contains(document.activeElement) ? document.activeElement : null;
    const row = active ? [...list.children].indexOf(active.closest("li")) : -1;
    const tag = active ? active.tagName.toLowerCase() : "";
    list.replaceChildren(...found.slice(0, MOST).map((listing) => this.item(listing)));
    if (found.length > MOST)
      list.append(
        el(
          "li",
          { class: "faint" },
          `… and ${found.length - MOST} more: find one by its name or a key`,
        ),
      );
    if (row >= 0 && list.children[row]) list.children[row].querySelector(tag)?.focus();
    const all = this.listings.length;
    // Without a run there is nothing to find, to sort or to choose.
    for (const part of [
      this.find.closest("label"),
      this.sort.closest("label"),
      byId("compare").closest("p"),
      byId("all").closest("p"),
    ])
      part.hidden = all === 0;
    byId("count").textContent = !all
      ? ""
      : found.length === all
        ? `(${all})`
        : `(${found.length} of ${all})`;
    byId("nothing").textContent =
      all && !found.length ? whyNothing(this.listings, this.common, this.find.value) : "";
    byId("matches").textContent =
      this.find.value.trim() && found.length
        ? `${several(found.length, "run matches", "runs match")}.`
        : "";
    this.buttons();
  }
}
