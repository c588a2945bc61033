// A server on runs, and a browser that notes every complaint and every request to somebody else.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before } from "node:test";
import { FEDSTAY } from "./command.mjs";

const require = createRequire(join(process.env.TOOLS, "node_modules/"));
const { chromium } = require("playwright-core");

const servers = new Set();

export function stopServers() {
  for (const server of servers) server.kill();
}
process.on("exit", stopServers);

// The end of a test: the browser had nothing to complain of.
export async function end(page, trouble, server) {
  assert.deepEqual(trouble, []);
  await page.close();
  server?.stop();
}

// The end of a test with two pages.
export async function endBoth(first, second, server) {
  await end(first.page, first.trouble);
  await end(second.page, second.trouble, server);
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
