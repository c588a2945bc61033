// A server on runs, and a browser that notes every complaint and every request to somebody else.

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
const COMPARE = new URL("../../experiments/default.toml", import.meta.url).pathname;

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

export function digits(out, ...sets) {
  return ["run", COMPARE, "--out", out, ...sets.flatMap((set) => ["--set", set])];
}

export async function view(...words) {
  const server = spawn(FEDSTAY, ["view", "--port", "0", ...words], { stdio: ["ignore", "pipe", "inherit"] });
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
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
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
  const name = new URL(route.request().url()).pathname.replace("/page/", "").replace(/^\//, "") || "index.html";
  const answer = await route.fetch();
  await route.fulfill({ response: answer, status: 200, body: readFileSync(join(PAGE, name)), contentType: KINDS[name.split(".").pop()] });
}
const KINDS = { html: "text/html; charset=utf-8", css: "text/css; charset=utf-8", js: "text/javascript; charset=utf-8", svg: "image/svg+xml" };

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
  await page.emulateMedia({ colorScheme: options.scheme || "light", forcedColors: options.forced ? "active" : "none" });
  if (options.size) await page.setViewportSize(options.size);
  await page.goto(url);
  if (options.empty) return { page, trouble };
  await page.waitForFunction(() => performance.getEntriesByName("fedstay-drawn").length > 0, null, { timeout: 20000 });
  return { page, trouble };
}

// A folder as some other engine would write it: `lines` are objects or raw text.
export function writeRun(path, header, lines, config) {
  mkdirSync(path, { recursive: true });
  const text = [header, ...lines].map((line) => (typeof line === "string" ? line : JSON.stringify(line))).join("\n");
  writeFileSync(join(path, "rounds.jsonl"), `${text}\n`);
  if (config) writeFileSync(join(path, "config.toml"), config);
}

// A finished run of another engine: a loss that falls, and the summary it ends in.
export function writeFinished(path, { rule, seed = 0, q = 1, rounds = 20, verdict = "retained", mean = 0.9, config }) {
  const lines = Array.from({ length: rounds }, (_, i) => {
    const accuracy = [mean * (i + 1) / rounds, (mean - 0.1) * (i + 1) / rounds];
    const loss = accuracy.map((value) => 1 - value);
    return { round: i + 1, agents: [0, 1], loss, d: [], case: null, left: [], step_size: 0.1, step_norm: 0.1, stop: null, assessment: { loss, accuracy, population: null } };
  });
  const agents = [0, 1].map((id) => ({ id, epsilon: 0.2, loss: 0.1 + id / 10, accuracy: mean - id / 10, left: null }));
  writeRun(path, header(2, rounds, { rule, seed, on: "digits" }), lines, config || `seed = ${seed}\nepsilon = 0.2\n[rule]\nkind = "${rule}"\n[partition]\nkind = "by-class"\nq = ${q}\n`);
  const summary = { verdict, stop: "settled", rounds, content: 2, agents, left: [], loss: { min: 0.1, mean: 0.15, max: 0.2 }, accuracy: { min: mean - 0.1, mean: mean - 0.05, max: mean }, population: { accuracy: mean - 0.02 }, warnings: [] };
  writeFileSync(join(path, "summary.json"), JSON.stringify(summary));
  return summary;
}

export function header(agents, rounds, more = {}) {
  return {
    schema: "fedstay.rounds/1", version: "0.1.0", rule: "ada-gd", on: "flower", seed: 0, rounds,
    agents: Array.from({ length: agents }, (_, id) => ({ id, epsilon: 0.2 })), ...more,
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
