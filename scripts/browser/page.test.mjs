// The page as a person meets it, in a real browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { FEDSTAY, browser, digits, drawing, fedstay, folder, header, open, stopServers, until, view, writeRun } from "./common.mjs";

let chrome;
before(async () => {
  chrome = await browser();
});
after(async () => {
  stopServers();
  await chrome.close();
});

const LOSSES = '[aria-label="Every agent’s loss against its precision"]';

test("a run is watched while it trains: the chart grows, a departure appears, it ends", async () => {
  const runs = folder();
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, { empty: true });
  await page.getByText("There is no run in these folders yet").waitFor();
  const training = spawn(FEDSTAY, digits(join(runs, "live"), "rule.kind=fedavg", "model.hidden=400", "step_size=0.05", "rounds=600"), { stdio: "ignore" });
  const over = new Promise((resolve) => training.on("exit", resolve));
  await page.locator(".badge", { hasText: "Running" }).waitFor({ timeout: 20000 });
  const round = async () => Number((await page.locator(".progress").textContent()).match(/round (\d+)/)[1]);
  await until(async () => (await round()) > 5, "the first rounds");
  const [early, drawn] = [await round(), await drawing(page, `${LOSSES} canvas`)];
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await until(async () => (await round()) > early + 10, "more rounds");
  assert.notEqual(await drawing(page, `${LOSSES} canvas`), drawn, "the chart has grown");
  assert.equal(training.exitCode, null, "while it trains");
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), height, "without moving the page");
  await until(async () => Number(await page.locator(".tile", { hasText: /^left/ }).locator("dd").textContent()) > 0, "a departure", 120000);
  await page.locator("td", { hasText: /^left in \d+$/ }).first().waitFor();
  await over;
  await page.locator(".badge", { hasText: "Harmful" }).waitFor({ timeout: 20000 });
  // No round has the model that is delivered; it stands at the end.
  const accuracy = page.getByRole("slider", { name: "Round, in the chart of accuracy" });
  await accuracy.focus();
  await page.keyboard.press("End");
  assert.match(await accuracy.getAttribute("aria-valuetext"), /delivered: mean accuracy \d/);
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});

test("runs are compared over each other, in the dark, by keyboard", async () => {
  const runs = folder();
  fedstay(...digits(join(runs, "averaging"), "rule.kind=fedavg"));
  fedstay(...digits(join(runs, "retain"), "rule.kind=retain"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, { scheme: "dark" });
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  assert.equal(dark, "rgb(20, 24, 28)");

  // By keyboard alone: to the list, choose both runs, press the button.
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the run");
  await page.locator("#find").focus();
  for (let chosen = 0; chosen < 2; chosen += 1) {
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Compare 2 runs");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Comparing runs" }).waitFor();
  await page.locator("tbody tr", { hasText: "retain" }).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.tagName), "H1", "the focus follows");
  const rows = await page.locator("tbody tr").allTextContents();
  assert.ok(rows.some((row) => row.includes("fedavg") && row.includes("10 of 10") && row.includes("Harmful")), rows.join());
  assert.ok(rows.some((row) => row.includes("retain") && row.includes("0 of 10") && row.includes("Retained")), rows.join());
  // Arrow keys move the cursor, and it is said what is there, of both runs at the same round.
  const plot = page.getByRole("slider", { name: "Agents still in" });
  await plot.focus();
  await page.keyboard.press("Home");
  assert.match(await plot.getAttribute("aria-valuetext"), /^round 1 · .*fedavg 10.*retain 10/);
  await page.keyboard.press("End");
  assert.match(await plot.getAttribute("aria-valuetext"), /fedavg( \(over\))? 0.*retain( \(over\))? 10/);

  await page.locator("#theme").click();
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "light");
  await page.getByRole("link", { name: "retain", exact: true }).click();
  await page.getByRole("heading", { name: "retain on digits, seed 0" }).waitFor();
  // Sorting and pinning, by keyboard.
  const margin = page.getByRole("button", { name: "margin", exact: true });
  await margin.focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.locator("th", { has: margin }).getAttribute("aria-sort"), "ascending");
  const agent = page.getByRole("button", { name: "agent 3" });
  await agent.focus();
  await page.keyboard.press("Enter");
  assert.equal(await agent.getAttribute("aria-pressed"), "true");
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});

test("a sweep's runs are looked at while it computes more of them", async () => {
  const place = folder();
  const study = join(place, "study.toml");
  writeFileSync(study, `rounds = 60
step_size = 0.3
eval_every = 5
[rule]
kind = "fedavg"
[data]
per_agent = 40
[grid]
epsilon = [0.3, 1.5]
seed = [0]
`);
  const store = ["--store", join(place, "study.db")];
  fedstay("sweep", study, ...store, "--set", "epsilon=[0.3]");
  const server = await view(study, ...store);
  const { page, trouble } = await open(chrome.context, server.url);
  const runs = page.getByRole("listitem").filter({ hasText: "epsilon=" });
  await until(async () => (await runs.count()) === 1, "the first run");
  fedstay("sweep", study, ...store);
  await until(async () => (await runs.count()) === 2, "the other one, once it is finished");
  await runs.filter({ hasText: "epsilon=1.5" }).getByRole("link").click();
  await page.getByRole("heading", { name: "fedavg on digits, seed 0" }).waitFor();
  await page.getByText("A run out of a sweep’s store").waitFor();
  await page.locator(".badge", { hasText: "Harmful" }).waitFor();
  await page.locator("td", { hasText: /^left in \d+$/ }).first().waitFor();
  const accuracy = page.getByRole("slider", { name: /accuracy/i }).first();
  await accuracy.focus();
  await page.keyboard.press("End");
  assert.match(await accuracy.getAttribute("aria-valuetext"), /mean accuracy \d/);
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});

test("a line that cannot be read is reported, the rest is shown, and names are text", async () => {
  const runs = folder();
  const name = "<img src=x onerror=alert(1)>";
  const line = (round, more = {}) => ({ round, agents: [0, 1], loss: [1 / round, 2 / round], d: [], case: null, left: [], step_size: 0.1, step_norm: 0.1, stop: null, ...more });
  const agents = [{ id: 0, epsilon: 0.2, name: "<script>alert(3)</script>" }, { id: 1, epsilon: 0.2 }];
  writeRun(join(runs, "<b>odd"), header(2, 50, { rule: name, agents }), [line(1), "{\"round\":2, oops", line(3, { faults: [[1, "<script>alert(2)</script>"]], agents: [0], loss: [0.5] })], `# ${name}\n`);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await page.getByRole("heading", { name: `${name} on flower, seed 0` }).waitFor();
  const told = page.locator(".trouble");
  assert.match(await told.locator("summary").textContent(), /^1 line or file could not be read/);
  await told.locator("summary").click();
  assert.match(await told.locator("li").textContent(), /^rounds.jsonl, line 3: /);
  assert.match(await page.locator(".progress").textContent(), /^<b>odd · round 3/);
  await page.getByRole("button", { name: "<script>alert(3)</script>", exact: true }).waitFor();
  assert.equal(await page.locator("main img, main script").count(), 0);
  // It goes on from there.
  appendFileSync(join(runs, "<b>odd", "rounds.jsonl"), `${JSON.stringify(line(4, { left: [0] }))}\n`);
  await page.locator(".progress", { hasText: "round 4" }).waitFor();
  await page.locator("td", { hasText: "left in 4" }).waitFor();
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});

test("a folder of another engine, private and with faults, on a phone", async () => {
  const runs = folder();
  const lines = Array.from({ length: 40 }, (_, i) => ({
    round: i + 1, agents: i % 7 ? [0, 1, 2] : [0, 2], loss: i % 7 ? [null, null, null] : [null, null],
    d: i > 20 ? [2] : [], case: i > 20 ? 1 : 2, left: [], faults: i % 7 ? undefined : [[1, "timed out"]], step_size: 0.1, step_norm: null, stop: null,
  }));
  const agents = [0, 1, 2].map((id) => ({ id, epsilon: null }));
  writeRun(join(runs, "private"), header(3, 100, { agents }), lines);
  mkdirSync(join(runs, "empty"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, { size: { width: 390, height: 844 } });
  await page.getByText("Nobody tells a loss in this run (privacy mode)").waitFor();
  await page.locator("td", { hasText: "about to leave" }).waitFor();
  const width = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(width[0] <= width[1], `nothing sticks out: ${width}`);
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});

test("a problem with two weights has a map whose way plays", async () => {
  const runs = folder();
  fedstay("run", "--set", "problem.kind=observation-3", "--set", "rule.kind=fedavg", "--set", "record_gram=true", "--out", join(runs, "map"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const map = page.locator('[aria-label="Map of the losses"]');
  await map.locator(".readout", { hasText: "left: agent 0, agent 1" }).waitFor();
  await map.getByRole("button", { name: "play" }).click();
  await map.locator(".readout", { hasText: "nobody has left" }).waitFor();
  await until(async () => /round ([5-9]|\d\d) /.test(await map.locator(".readout").textContent()), "the way plays");
  assert.match(await page.locator('[aria-label="Theory"]').textContent(), /1\.4142 \(known\)/);
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});

test("200 agents × 5,000 rounds stay smooth", async () => {
  const runs = folder();
  const ids = Array.from({ length: 200 }, (_, id) => id);
  const lines = [];
  for (let round = 1; round <= 5000; round += 1) {
    const gone = Math.min(60, Math.max(0, Math.floor((round - 2500) / 40)));
    const still = ids.slice(gone);
    const loss = still.map((id) => 0.15 + (2 + (id % 13) / 10) * Math.exp(-round / (900 + 3 * id)) + 0.05 * Math.sin(round * (id + 1)));
    const left = round > 2500 && round % 40 === 0 && gone < 60 ? [gone] : [];
    lines.push({ round, agents: still, loss, d: still.filter((id, i) => loss[i] < 0.3 && id % 3 === 0), case: 1, left: left.filter((id) => still.includes(id)), step_size: 0.1, step_norm: 0.01 + 1 / round, stop: null });
  }
  writeRun(join(runs, "large"), header(200, 5000), lines);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const first = await page.evaluate(() => {
    const bytes = performance.getEntriesByType("resource").map((entry) => [new URL(entry.name).pathname.split("/").pop(), entry.transferSize || entry.encodedBodySize]);
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return { bytes, drawn: performance.getEntriesByName("fedstay-drawn")[0].startTime, paint: paint ? paint.startTime : NaN };
  });
  const series = first.bytes.filter(([name]) => name === "series").reduce((sum, [, bytes]) => sum + bytes, 0);
  const all = first.bytes.reduce((sum, [, bytes]) => sum + bytes, 0);
  // The pointer moves over the chart; every frame is timed.
  const box = await page.locator(`${LOSSES} .plot`).boundingBox();
  await page.evaluate(() => {
    window.frames_ = [];
    let last = performance.now();
    const tick = (now) => {
      window.frames_.push(now - last);
      last = now;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  for (let step = 0; step < 120; step += 1) {
    await page.mouse.move(box.x + 80 + step * 8, box.y + 60 + (step % 40) * 5);
  }
  const frames = (await page.evaluate(() => window.frames_.slice(2))).sort((a, b) => a - b);
  const at = (share) => frames[Math.floor(share * (frames.length - 1))];
  // A whole redraw, as an update of a live run causes it.
  const redraw = await page.evaluate(async () => {
    const times = [];
    for (let i = 0; i < 5; i += 1) {
      const since = performance.now();
      document.getElementById("theme").click();
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      times.push(performance.now() - since);
    }
    return times.sort((a, b) => a - b)[2];
  });
  console.log(`200 agents x 5,000 rounds: series ${(series / 1e3).toFixed(0)} kB, all ${(all / 1e3).toFixed(0)} kB; first paint ${first.paint.toFixed(0)} ms, drawn ${first.drawn.toFixed(0)} ms; frame while pointing: median ${at(0.5).toFixed(1)} ms, 95% ${at(0.95).toFixed(1)} ms; everything drawn anew ${redraw.toFixed(0)} ms`);
  assert.ok(series > 0 && series < 800_000, `${series} bytes`);
  assert.ok(at(0.5) < 50, `median frame ${at(0.5)} ms`);
  assert.deepEqual(trouble, []);
  await page.close();
  server.stop();
});
