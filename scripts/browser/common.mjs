// A server on runs, and a browser that notes every complaint and every request to somebody else.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";

const require = createRequire(join(process.env.TOOLS, "node_modules/"));
const { chromium } = require("playwright-core");
// Every folder, profile and server is removed or stopped at the end.
process.setMaxListeners(100);
export const FEDSTAY = process.env.FEDSTAY;
const experiment = (name) => new URL(`../../experiments/${name}.toml`, import.meta.url).pathname;

const servers = new Set();

export function stopServers() {
  for (const server of servers) server.kill();
}
process.on("exit", stopServers);

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "fedstay-browser-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

export function fedstay(...words) {
  const done = spawnSync(FEDSTAY, words, { encoding: "utf8" });
  if (done.status !== 0) throw new Error(`fedstay ${words.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

// The extreme case, in which rules differ most.
export function digits(out, ...sets) {
  return on("extreme", out, ...sets);
}

export function usual(out, ...sets) {
  return on("default", out, ...sets);
}

function on(name, out, ...sets) {
  return ["run", experiment(name), ...settings(out, ...sets).slice(1)];
}

// The words for a run that is described by settings alone.
export function settings(out, ...sets) {
  return ["run", "--out", out, ...sets.flatMap((set) => ["--set", set])];
}

// The end of a test: the browser had nothing to complain of.
export async function end(page, trouble, server) {
  assert.deepEqual(trouble, []);
  await page.close();
  server?.stop();
}

export function view(...words) {
  return viewBy(FEDSTAY, ...words);
}

// The page of one build among several.
export async function viewBy(program, ...words) {
  const server = spawn(program, ["view", "--port", "0", ...words], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const url = await new Promise((resolve, reject) => {
    let said = "";
    server.stdout.on("data", (text) => {
      said += text;
      const found = said.match(/open (\S+)\n/);
      if (found) resolve(found[1]);
    });
    server.on("exit", () => reject(new Error(`fedstay view ended: ${said}`)));
  });
  servers.add(server);
  return { url, stop: () => server.kill() };
}

export async function browser() {
  const profile = mkdtempSync(join(tmpdir(), "fedstay-profile-"));
  const context = await chromium.launchPersistentContext(profile, {
    executablePath: "/usr/bin/chromium",
    headless: true,
    viewport: { width: 1280, height: 900 },
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  return {
    context,
    close: async () => {
      await context.close();
      rmSync(profile, { recursive: true, force: true });
    },
  };
}

// The browser of a file of tests, there once they begin.
export function useBrowser() {
  const held = {};
  before(async () => Object.assign(held, await browser()));
  after(async () => {
    stopServers();
    await held.close();
  });
  return held;
}

// With PAGE=crates/fedstay-view/src/page its files are read from there: no build to see a change.
const { PAGE } = process.env;

async function fromFolder(route) {
  const name =
    new URL(route.request().url()).pathname.replace("/page/", "").replace(/^\//, "") ||
    "index.html";
  const answer = await route.fetch();
  await route.fulfill({
    response: answer,
    status: 200,
    body: readFileSync(join(PAGE, name)),
    contentType: KINDS[name.split(".").pop()],
  });
}
const KINDS = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

// A page that remembers what it complained about and whom it asked.
export async function open(context, url, options = {}) {
  const page = await context.newPage();
  const trouble = [];
  const own = new URL(url).origin;
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) trouble.push(message.text());
  });
  page.on("pageerror", (error) => trouble.push(error.stack));
  page.on("request", (request) => {
    if (!request.url().startsWith(own)) trouble.push(`asked ${request.url()}`);
  });
  if (PAGE) await page.route(/\/(page\/[^/?]+)?(\?.*)?$/, (route) => fromFolder(route));
  await page.emulateMedia({
    colorScheme: options.scheme || "light",
    forcedColors: options.forced ? "active" : "none",
  });
  if (options.size) await page.setViewportSize(options.size);
  await page.goto(url);
  if (options.empty) return { page, trouble };
  await page.waitForFunction(() => performance.getEntriesByName("fedstay-drawn").length > 0, null, {
    timeout: 20000,
  });
  return { page, trouble };
}

// A folder as some other engine would write it: `lines` are objects or raw text.
export function writeRun(path, header, lines, config) {
  mkdirSync(path, { recursive: true });
  const text = [header, ...lines]
    .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .join("\n");
  writeFileSync(join(path, "rounds.jsonl"), `${text}\n`);
  if (config) writeFileSync(join(path, "config.toml"), config);
}

// A finished run of another engine: a loss that falls, and the summary it ends in.
export function writeFinished(
  path,
  { rule, seed = 0, q = 1, rounds = 20, verdict = "retained", mean = 0.9, config },
) {
  const lines = Array.from({ length: rounds }, (_, i) => {
    const accuracy = [(mean * (i + 1)) / rounds, ((mean - 0.1) * (i + 1)) / rounds];
    const loss = accuracy.map((value) => 1 - value);
    return {
      round: i + 1,
      agents: [0, 1],
      loss,
      d: [],
      case: null,
      left: [],
      step_size: 0.1,
      step_norm: 0.1,
      stop: null,
      assessment: { loss, accuracy, population: null },
    };
  });
  const agents = [0, 1].map((id) => ({
    id,
    epsilon: 0.2,
    loss: 0.1 + id / 10,
    accuracy: mean - id / 10,
    left: null,
  }));
  writeRun(
    path,
    header(2, rounds, { rule, seed, on: "digits" }),
    lines,
    config ||
      `seed = ${seed}\nepsilon = 0.2\n[rule]\nkind = "${rule}"\n[partition]\nkind = "by-class"\nq = ${q}\n`,
  );
  const summary = {
    verdict,
    stop: "settled",
    rounds,
    content: 2,
    agents,
    left: [],
    loss: { min: 0.1, mean: 0.15, max: 0.2 },
    accuracy: { min: mean - 0.1, mean: mean - 0.05, max: mean },
    population: { accuracy: mean - 0.02 },
    warnings: [],
  };
  writeFileSync(join(path, "summary.json"), JSON.stringify(summary));
  return summary;
}

// 200 agents × 5,000 rounds of losses that never lie on a line, sixty of them leaving: the largest
// run measured.
export function writeLarge(path) {
  const ids = Array.from({ length: 200 }, (_, id) => id);
  const lines = [];
  for (let round = 1; round <= 5000; round += 1) {
    const gone = Math.min(60, Math.max(0, Math.floor((round - 2500) / 40)));
    const still = ids.slice(gone);
    const loss = still.map(
      (id) =>
        0.15 +
        (2 + (id % 13) / 10) * Math.exp(-round / (900 + 3 * id)) +
        0.05 * Math.sin(round * (id + 1)),
    );
    const left = round > 2500 && round % 40 === 0 && gone < 60 ? [gone] : [];
    lines.push({
      round,
      agents: still,
      loss,
      d: still.filter((id, i) => loss[i] < 0.3 && id % 3 === 0),
      case: 1,
      left: left.filter((id) => still.includes(id)),
      step_size: 0.1,
      step_norm: 0.01 + 1 / round,
      stop: null,
    });
  }
  writeRun(path, header(200, 5000), lines);
}

// A hundred finished runs under four rules, of 60 to 159 rounds.
export function writeHundred(folder) {
  for (let seed = 0; seed < 100; seed += 1) {
    const rule = ["fedavg", "retain", "ada-gd", "mixed-retention"][seed % 4];
    writeFinished(join(folder, `run-${seed}`), {
      rule,
      seed,
      q: seed % 2 ? 0.9 : 0.4,
      mean: 0.5 + seed / 250,
      rounds: 60 + seed,
    });
  }
}

// Notes how long every frame of a page takes, from now on.
export function watchFrames(page) {
  return page.evaluate(() => {
    window.frames_ = [];
    let last = performance.now();
    const tick = (now) => {
      window.frames_.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
}

// Moves the pointer over a chart, whose frames are watched, and returns how long they took, in
// order of size.
export async function pointOver(page, box) {
  for (let step = 0; step < 120; step += 1)
    await page.mouse.move(box.x + 80 + step * 8, box.y + 60 + (step % 40) * 5);
  return (await page.evaluate(() => window.frames_.slice(2))).sort((a, b) => a - b);
}

// How long everything takes to be drawn again, as an update of a live run causes it: the median of
// five.
export function redraw(page) {
  return page.evaluate(async () => {
    const times = [];
    for (let i = 0; i < 5; i += 1) {
      const since = performance.now();
      document.getElementById("theme").click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      times.push(performance.now() - since);
    }
    return times.sort((a, b) => a - b)[2];
  });
}

export function header(agents, rounds, more = {}) {
  return {
    schema: "fedstay.rounds/1",
    version: "0.1.0",
    rule: "ada-gd",
    on: "flower",
    seed: 0,
    rounds,
    agents: Array.from({ length: agents }, (_, id) => ({ id, epsilon: 0.2 })),
    ...more,
  };
}

// What is drawn on a canvas.
export function drawing(page, selector) {
  return page.$eval(selector, (canvas) => canvas.toDataURL());
}

export async function until(check, what, limit = 30000) {
  const since = Date.now();
  while (Date.now() - since < limit) {
    if (await check()) return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error(`waited in vain: ${what}`);
}
