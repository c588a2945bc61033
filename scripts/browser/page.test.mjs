// The page as a person sees it, in a real browser.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { FEDSTAY, digits, fedstay, folder, mapped } from "./command.mjs";
import {
  drawing,
  end,
  endBoth,
  open,
  pointOver,
  redraw,
  until,
  useBrowser,
  view,
  watchFrames,
} from "./common.mjs";
import { falling, header, roundLine, writeHundred, writeLarge, writeRun } from "./runs.mjs";

const chrome = useBrowser();

const LOSSES = '[aria-label="Every agent’s loss against its target loss"]';

const summaryOf = (run) => JSON.parse(readFileSync(join(run, "summary.json"), "utf8"));
const percent = (value) => `${(100 * value).toFixed(1)}%`;
const tile = (page, name) =>
  page
    .locator(".tile", { has: page.locator("dt", { hasText: new RegExp(`^${name}$`) }) })
    .locator("dd");

test("a run is watched while it trains: the chart grows, a departure appears, it ends", async () => {
  const runs = folder();
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, { empty: true });
  await page.getByText("There is no run in these folders yet").waitFor();
  const training = spawn(
    FEDSTAY,
    digits(
      join(runs, "live"),
      "rule.kind=fedavg",
      "model.hidden=400",
      "step_size=0.05",
      "rounds=600",
    ),
    { stdio: "ignore" },
  );
  const over = new Promise((resolve) => training.on("exit", resolve));
  await page.locator(".badge", { hasText: "Running" }).waitFor({ timeout: 20000 });
  const round = async () =>
    Number((await page.locator(".progress").textContent()).match(/round (\d+)/)[1]);
  await until(async () => (await round()) > 5, "the first rounds");
  // How long it has taken, and may still take.
  assert.match(
    await page.locator(".progress").textContent(),
    /round \d+ of at most 600 · 10 agents · began .* · \d+ (s|min)[^·]* so far · at most \d+ (s|min|h)[^·]* left/,
  );
  const [early, drawn] = [await round(), await drawing(page, `${LOSSES} canvas`)];
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  await until(async () => (await round()) > early + 10, "more rounds");
  // A chart in sight is drawn a frame after the numbers.
  await until(
    async () => (await drawing(page, `${LOSSES} canvas`)) !== drawn,
    "a chart that has grown",
  );
  assert.equal(training.exitCode, null, "while it trains");
  assert.equal(
    await page.evaluate(() => document.documentElement.scrollHeight),
    height,
    "without moving the page",
  );
  await until(
    async () =>
      Number(await page.locator(".tile", { hasText: /^left/ }).locator("dd").textContent()) > 0,
    "a departure",
    120000,
  );
  await page
    .locator("td", { hasText: /^left in \d+$/ })
    .first()
    .waitFor();
  await over;
  await page.locator(".badge", { hasText: "Harmful" }).waitFor({ timeout: 20000 });
  await page.getByText(/\d+ of 10 content\. It ended/).waitFor();
  // No round has the delivered model; it is drawn at the end.
  const accuracy = page.getByRole("slider", { name: "Round, in the chart of what is measured" });
  await accuracy.focus();
  await page.keyboard.press("End");
  assert.match(await accuracy.getAttribute("aria-valuetext"), /delivered: mean accuracy \d/);
  await end(page, trouble, server);
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
  await page.locator("#sort").focus();
  for (let chosen = 0; chosen < 2; chosen += 1) {
    await page.keyboard.press("Tab");
    await page.keyboard.press("Space");
    await page.keyboard.press("Tab");
  }
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Compare 2 runs");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Comparing 2 runs" }).waitFor();
  const results = page.getByRole("region", { name: "Table: Results" });
  await results.locator("tbody tr", { hasText: "retain" }).waitFor();
  assert.equal(
    await page.evaluate(() => document.activeElement.tagName),
    "H1",
    "the focus follows",
  );
  const rows = await results.locator("tbody tr").allTextContents();
  assert.ok(
    rows.some(
      (row) => row.includes("averaging") && row.includes("10 of 10") && row.includes("Harmful"),
    ),
    rows.join(),
  );
  // Table and readouts are those of the delivered models, which no round has.
  for (const name of ["averaging", "retain"]) {
    const { accuracy, loss, rounds } = summaryOf(join(runs, name));
    const cells = await results
      .locator("tbody tr", { hasText: name })
      .locator("td")
      .allTextContents();
    assert.deepEqual(
      cells.slice(5, 9),
      [loss.mean, loss.max]
        .map((value) => value.toFixed(4))
        .concat([accuracy.mean, accuracy.min].map(percent)),
      name,
    );
    for (const [slider, value] of [
      ["Mean over", accuracy.mean],
      ["The worst", accuracy.min],
    ]) {
      const chart = page.getByRole("slider", { name: slider });
      await chart.focus();
      await page.keyboard.press("End");
      assert.ok(
        (await chart.getAttribute("aria-valuetext")).includes(
          `${name}: ended in ${rounds}, delivered ${percent(value)}`,
        ),
        name,
      );
    }
  }
  await page.getByText("the delivered model").first().waitFor();
  assert.ok(
    rows.some(
      (row) => row.includes("retain") && row.includes("0 of 10") && row.includes("Retained"),
    ),
    rows.join(),
  );
  // Arrow keys move the cursor, and the values of both runs at that round are spoken.
  const plot = page.getByRole("slider", { name: "Agents still in" });
  await plot.focus();
  await page.keyboard.press("Home");
  assert.match(await plot.getAttribute("aria-valuetext"), /^round 1 · .*averaging 10.*retain 10/);
  await page.keyboard.press("End");
  assert.match(
    await plot.getAttribute("aria-valuetext"),
    /averaging: ended in \d+ with 0 .*retain: ended in \d+ with 10/,
  );

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
  await end(page, trouble, server);
});

test("a finished run is shown by what it delivered, not by its last reports", async () => {
  const runs = folder();
  mapped(join(runs, "observation-3"));
  const { loss, agents, rounds } = summaryOf(join(runs, "observation-3"));
  assert.ok(loss.max > 0.9, "the last report was 0.2");
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await page.locator(".badge", { hasText: "Harmful" }).waitFor();
  const content = agents.filter((agent) => agent.loss <= agent.epsilon).length;
  const tiles = {
    left: "2 of 2",
    content: `${content} of 2`,
    "mean loss": loss.mean.toFixed(4),
    "worst loss": loss.max.toFixed(4),
    rounds: String(rounds),
  };
  for (const [name, value] of Object.entries(tiles))
    assert.equal(await tile(page, name).textContent(), value, name);
  assert.equal(await page.locator(".tile").count(), Object.keys(tiles).length);
  const heads = await page.locator("thead th").allTextContents();
  assert.deepEqual(heads, [
    "agent",
    "content",
    "loss",
    "ε",
    "margin",
    "left in round",
    "behaviour",
  ]);
  for (const agent of agents) {
    const cells = await page
      .locator("tbody tr", { hasText: `agent ${agent.id}` })
      .locator("td")
      .allTextContents();
    assert.deepEqual(
      [cells[0], cells[1], cells[4], cells[5]],
      [
        agent.loss <= agent.epsilon ? "yes" : "no",
        agent.loss.toFixed(4),
        String(agent.left),
        "threshold",
      ],
    );
  }
  // The charts end in the same numbers.
  for (const [slider, wanted] of [
    [
      "chart of what is measured",
      `mean loss ${loss.mean.toFixed(4)}, worst agent’s loss ${loss.max.toFixed(4)}`,
    ],
    ["chart of losses", `delivered from ${loss.min.toFixed(4)} to ${loss.max.toFixed(4)}`],
  ]) {
    const chart = page.getByRole("slider", { name: slider });
    await chart.focus();
    await page.keyboard.press("End");
    assert.ok(
      (await chart.getAttribute("aria-valuetext")).includes(wanted),
      await chart.getAttribute("aria-valuetext"),
    );
  }
  await page.getByText("Over all agents, including those that left").waitFor();
  const theory = await page.locator('[aria-label="Theory"]').textContent();
  assert.ok(
    !theory.includes("rule.delta") && theory.includes("this rule keeps nobody by one"),
    theory,
  );
  await end(page, trouble, server);
});

test("every verdict and every end has its words and its colour", async () => {
  const runs = folder();
  const only = roundLine(1, [0.4, 0.3]);
  const agents = [
    { id: 0, epsilon: 0.2, loss: 0.1, left: null },
    { id: 1, epsilon: 0.2, loss: 0.3, left: null },
  ];
  const verdicts = {
    retained: "good",
    benign: "fair",
    harmful: "bad",
    unknown: "open",
    unsatisfied: "warn",
  };
  const stops = [
    "settled",
    "landed",
    "stalled",
    "everyone-left",
    "early-stop",
    "round-limit",
    "too-few",
    "nobody-left",
  ];
  for (const [at, stop] of stops.entries()) {
    const verdict = Object.keys(verdicts)[at % 5];
    writeRun(join(runs, stop), header(2, 9), [only]);
    writeFileSync(
      join(runs, stop, "summary.json"),
      JSON.stringify({
        verdict,
        stop,
        rounds: 1,
        agents,
        left: [],
        loss: { min: 0.1, mean: 0.2, max: 0.3 },
        warnings: ["the losses <b>hardly</b> moved"],
      }),
    );
  }
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const said = new Set();
  for (const [at, stop] of stops.entries()) {
    const [verdict, tone] = Object.entries(verdicts)[at % 5];
    await page.getByRole("link", { name: stop }).click();
    await page.locator(".progress", { hasText: `${stop} ·` }).waitFor();
    assert.equal((await page.locator(".badge").textContent()).toLowerCase(), verdict);
    assert.equal(await page.locator(".badge").getAttribute("data-tone"), tone);
    const words = await page.locator(".words").textContent();
    assert.match(words, /1 of 2 content\. It /);
    assert.doesNotMatch(words, /It ended: |[Nn]obody left/);
    said.add(words.split(" It ")[1]);
    assert.equal(
      await page.locator(".warnings li").textContent(),
      "The losses <b>hardly</b> moved.",
    );
    await page
      .getByRole("listitem")
      .filter({ hasText: `${verdict}, 1 of 2 content · round 1` })
      .first()
      .waitFor();
  }
  assert.equal(said.size, stops.length - 1, "the old name is read as the new one");
  await end(page, trouble, server);
});

test("agents that decide on their own model: two losses, one prediction", async () => {
  const runs = folder();
  const lines = Array.from({ length: 30 }, (_, i) =>
    roundLine(i + 1, [0.905 - 0.01 * (i + 1), 0.9 - 0.0001 * (i + 1)], {
      assessment:
        (i + 1) % 5 ? undefined : { loss: [1.8, 1.9], accuracy: [0.5, 0.4], population: null },
    }),
  );
  writeRun(join(runs, "own"), header(2, 500, { rule: "fedavg" }), lines, 'decides_on = "own"\n');
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await page.getByText("Thick: the loss of each agent’s own model").waitFor();
  const rows = page.locator("tbody tr");
  assert.match(await rows.nth(0).textContent(), /0\.6050.*in \d+ to \d+ rounds/);
  assert.match(await rows.nth(1).textContent(), /0\.8970.*not within 500 rounds/);
  const chart = page.getByRole("slider", { name: "chart of losses" });
  await chart.focus();
  await page.keyboard.press("End");
  assert.match(
    await chart.getAttribute("aria-valuetext"),
    /2 losses known, from 0\.6050 to 0\.8970/,
  );
  await end(page, trouble, server);
});

test("a sweep's runs are looked at while it computes more of them", async () => {
  const place = folder();
  const study = join(place, "study.toml");
  writeFileSync(
    study,
    `rounds = 60
step_size = 0.3
eval_every = 5
[rule]
kind = "fedavg"
[data]
per_agent = 40
[grid]
epsilon = [0.3, 1.5]
seed = [0]
`,
  );
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
  await page.getByText("A run from a sweep’s store").waitFor();
  await page.locator(".badge", { hasText: "Empty" }).waitFor();
  await page.locator("th", { hasText: /^left in round$/ }).waitFor();
  await page.locator("td", { hasText: /^no$/ }).first().waitFor();
  const accuracy = page.getByRole("slider", { name: /what is measured/i }).first();
  await accuracy.focus();
  await page.keyboard.press("End");
  assert.match(await accuracy.getAttribute("aria-valuetext"), /mean accuracy \d/);
  await end(page, trouble, server);
});

test("a line that cannot be read is reported, the rest is shown, and names are text", async () => {
  const runs = folder();
  const name = "<img src=x onerror=alert(1)>";
  const agents = [
    { id: 0, epsilon: 0.2, name: "<script>alert(3)</script>" },
    { id: 1, epsilon: 0.2 },
  ];
  writeRun(
    join(runs, "<b>odd"),
    header(2, 50, { rule: name, agents }),
    [
      falling(1),
      '{"round":2, oops',
      falling(3, { faults: [[1, "<script>alert(2)</script>"]], agents: [0], loss: [0.5] }),
    ],
    `# ${name}\n`,
  );
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
  // It continues from there.
  appendFileSync(
    join(runs, "<b>odd", "rounds.jsonl"),
    `${JSON.stringify(falling(4, { left: [0] }))}\n`,
  );
  await page.locator(".progress", { hasText: "round 4" }).waitFor();
  await page.locator("td", { hasText: "left in 4" }).waitFor();
  await end(page, trouble, server);
});

test("a folder of another engine, private and with faults, on a phone", async () => {
  const runs = folder();
  const lines = Array.from({ length: 40 }, (_, i) => ({
    round: i + 1,
    agents: i % 7 ? [0, 1, 2] : [0, 2],
    loss: i % 7 ? [null, null, null] : [null, null],
    d: i > 20 ? [2] : [],
    case: i > 20 ? 1 : 2,
    left: [],
    faults: i % 7 ? undefined : [[1, "timed out"]],
    step_size: 0.1,
    step_norm: null,
    stop: null,
  }));
  const agents = [0, 1, 2].map((id) => ({ id, epsilon: null }));
  writeRun(join(runs, "private"), header(3, 100, { agents }), lines);
  mkdirSync(join(runs, "empty"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, {
    size: { width: 390, height: 844 },
  });
  await page.getByText("Nobody tells a loss in this run (privacy mode)").waitFor();
  await page.locator("td", { hasText: "about to leave" }).waitFor();
  const width = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(width[0] <= width[1], `nothing sticks out: ${width}`);
  await end(page, trouble, server);
});

test("a problem with two weights has a map whose way plays", async () => {
  const runs = folder();
  mapped(join(runs, "map"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const map = page.locator('[aria-label="Map of the losses"]');
  await map.locator(".readout", { hasText: "left: agent 0, agent 1" }).waitFor();
  await map.getByRole("button", { name: "play" }).click();
  await map.locator(".readout", { hasText: "nobody has left" }).waitFor();
  await until(
    async () => /round ([5-9]|\d\d) /.test(await map.locator(".readout").textContent()),
    "the trajectory plays",
  );
  assert.match(await page.locator('[aria-label="Theory"]').textContent(), /1\.4142 \(known\)/);
  await end(page, trouble, server);
});

test("a movement of the pointer draws no chart again, and is looked up once per frame", async () => {
  const runs = folder();
  fedstay(...digits(join(runs, "one"), "rule.kind=fedavg", "rounds=60"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const plot = page.locator(`${LOSSES} .plot`);
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + 200, box.y + 100);
  await plot.locator(".values li").first().waitFor();
  // From now on: what is painted on which canvas, and how often the chart asks where it is on the
  // screen.
  await page.evaluate(() => {
    window.counted = { below: 0, above: 0, asked: 0, frames: 0 };
    const { clearRect } = CanvasRenderingContext2D.prototype;
    CanvasRenderingContext2D.prototype.clearRect = function counts(...words) {
      window.counted[
        this.canvas === this.canvas.parentElement?.querySelector("canvas") ? "below" : "above"
      ] += 1;
      return clearRect.apply(this, words);
    };
    const { getBoundingClientRect } = Element.prototype;
    Element.prototype.getBoundingClientRect = function counts() {
      if (this.classList.contains("plot")) window.counted.asked += 1;
      return getBoundingClientRect.apply(this);
    };
    const tick = () => {
      window.counted.frames += 1;
      requestAnimationFrame(tick);
    };
    requestAnimationFrame(tick);
  });
  // A hundred movements at once, as a fast mouse makes them, and then forty one by one.
  const counted = await page.evaluate(async (selector) => {
    const chart = document.querySelector(selector);
    const { left, top } = chart.getBoundingClientRect();
    window.counted.asked = 0;
    for (let i = 0; i < 100; i += 1)
      chart.dispatchEvent(
        new PointerEvent("pointermove", {
          clientX: left + 100 + i,
          clientY: top + 100,
          bubbles: true,
        }),
      );
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
    return { ...window.counted };
  }, `${LOSSES} .plot`);
  assert.equal(counted.asked, 1, "a hundred movements are looked up once");
  const line = () => plot.locator(".cursor").evaluate((element) => element.style.transform);
  const before = await line();
  for (let i = 0; i < 40; i += 1) await page.mouse.move(box.x + 300 + 5 * i, box.y + 100 + 3 * i);
  await until(async () => (await line()) !== before, "the cursor's line moves");
  const { below, above, frames } = await page.evaluate(() => window.counted);
  assert.equal(below, 0, "nothing below the cursor is drawn again");
  // What is highlighted is drawn in the chart of losses and in the strip, at most once per frame.
  assert.ok(above <= 2 * frames, `${above} times in ${frames} frames`);
  await page.mouse.move(5, 5);
  await until(
    async () => plot.locator(".cursor").evaluate((element) => element.hidden),
    "no cursor",
  );
  await end(page, trouble, server);
});

test("the page's frame is painted before its script and its runs are asked for", async () => {
  const runs = folder();
  writeHundred(runs);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await until(async () => (await page.locator("#runs li").count()) === 100, "the list");
  const told = await page.evaluate(() => {
    const asked = (part) =>
      performance.getEntriesByType("resource").filter(({ name }) => name.includes(part));
    const [first, script, list, run] = ["/page/first.js", "/page/", "/api/runs", "/api/whole"].map(
      asked,
    );
    return {
      paint: performance.getEntriesByName("first-contentful-paint")[0].startTime,
      first: first[0].responseEnd,
      later: [
        ...script.filter(({ name }) => name.endsWith(".js") && !name.endsWith("first.js")),
        ...list,
        ...run,
      ].map(({ name, startTime }) => [new URL(name).pathname, startTime]),
      blocking: performance
        .getEntriesByType("resource")
        .filter(({ renderBlockingStatus }) => renderBlockingStatus === "blocking").length,
    };
  });
  assert.equal(told.blocking, 0, "nothing keeps the browser from painting");
  // A page that is not painted for long, as in a hidden window, does not wait for it.
  for (const [name, since] of told.later)
    assert.ok(
      told.paint <= since || since - told.first > 95,
      `painted after ${told.paint} ms, asked for ${name} after ${since} ms`,
    );
  await end(page, trouble, server);
});

test("nothing moves while the page fills: 100 runs, one run, a comparison, a phone", async () => {
  const runs = folder();
  writeHundred(runs);
  const server = await view(runs);
  const { page: home } = await open(chrome.context, server.url);
  const ids = await home.evaluate(async () =>
    (await (await fetch("/api/runs")).json()).runs.map(({ id }) => id),
  );
  await home.close();
  for (const [where, size] of [
    ["", null],
    [`#compare=${ids.slice(0, 12)}`, null],
    ["", { width: 390, height: 844 }],
  ]) {
    const { page, trouble } = await open(
      chrome.context,
      `${server.url.split("#")[0]}${where}`,
      size ? { size } : {},
    );
    await until(async () => (await page.locator("#runs li").count()) === 100, "the list");
    await page.waitForTimeout(500);
    const moved = await page.evaluate(
      () =>
        new Promise((done) => {
          let sum = 0;
          new PerformanceObserver((list) =>
            list.getEntries().forEach((entry) => {
              sum += entry.value;
            }),
          ).observe({ type: "layout-shift", buffered: true });
          setTimeout(() => done(sum), 100);
        }),
    );
    assert.ok(moved < 0.01, `${where.slice(0, 10)} ${size?.width ?? ""}: ${moved}`);
    assert.deepEqual(trouble, []);
    await page.close();
  }
  server.stop();
});

test("a chosen theme is there in the first frame, and the next window has it too", async () => {
  const runs = folder();
  fedstay(...digits(join(runs, "one"), "rule.kind=fedavg", "rounds=5"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const background = (of) => of.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [light, dark] = ["rgb(244, 245, 247)", "rgb(20, 24, 28)"];
  const button = page.locator("#theme");
  const choose = async (wanted) => {
    for (let i = 0; i < 3 && (await button.textContent()) !== `theme: ${wanted}`; i += 1)
      await button.click();
    assert.equal(await button.textContent(), `theme: ${wanted}`);
  };
  // Without any script: what the server sends is right by itself.
  const bare = async (scheme) => {
    const other = await chrome.context.newPage();
    await other.emulateMedia({ colorScheme: scheme });
    await other.route(/\/page\/.*\.js$/, (route) => route.abort());
    await other.goto(server.url);
    const found = await background(other);
    await other.close();
    return found;
  };
  await choose("auto");
  assert.deepEqual([await bare("light"), await bare("dark")], [light, dark]);
  await choose("dark");
  assert.deepEqual([await background(page), await bare("light")], [dark, dark]);
  await choose("light");
  assert.deepEqual([await background(page), await bare("dark")], [light, light]);
  const again = await open(chrome.context, server.url, { scheme: "dark" });
  assert.equal(await background(again.page), light);
  assert.equal(await again.page.locator("#theme").textContent(), "theme: light");
  await choose("auto");
  await endBoth({ page, trouble }, again, server);
});

test("200 agents × 5,000 rounds stay smooth", async () => {
  const runs = folder();
  writeLarge(join(runs, "large"));
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const first = await page.evaluate(() => {
    const bytes = performance
      .getEntriesByType("resource")
      .map((entry) => [
        new URL(entry.name).pathname.split("/").pop(),
        entry.transferSize || entry.encodedBodySize,
      ]);
    const paint = performance.getEntriesByName("first-contentful-paint")[0];
    return {
      bytes,
      drawn: performance.getEntriesByName("fedstay-drawn")[0].startTime,
      paint: paint ? paint.startTime : NaN,
    };
  });
  const series = first.bytes
    .filter(([name]) => name === "whole")
    .reduce((sum, [, bytes]) => sum + bytes, 0);
  const all = first.bytes.reduce((sum, [, bytes]) => sum + bytes, 0);
  // The pointer moves over the chart; every frame is timed.
  const box = await page.locator(`${LOSSES} .plot`).boundingBox();
  await watchFrames(page);
  const frames = await pointOver(page, box);
  const at = (share) => frames[Math.floor(share * (frames.length - 1))];
  const again = await redraw(page);
  console.log(
    `200 agents x 5,000 rounds: series ${(series / 1e3).toFixed(0)} kB, all ` +
      `${(all / 1e3).toFixed(0)} kB; first paint ${first.paint.toFixed(0)} ms, drawn ` +
      `${first.drawn.toFixed(0)} ms; frame while pointing: median ${at(0.5).toFixed(1)} ` +
      `ms, 95% ${at(0.95).toFixed(1)} ms; everything drawn again ${again.toFixed(0)} ms`,
  );
  // Of a part of the rounds every single one is there.
  const chart = page.getByRole("slider", { name: "chart of losses" });
  await page.mouse.move(5, 5);
  await chart.focus();
  await page.keyboard.press("Home");
  assert.match(await chart.getAttribute("aria-valuetext"), /^rounds 1–\d+/);
  for (let i = 0; i < 6; i += 1) await page.keyboard.press("+");
  await until(async () => {
    await page.keyboard.press("ArrowRight");
    return /^round \d+ /.test(await chart.getAttribute("aria-valuetext"));
  }, "single rounds");
  await page.keyboard.press("End");
  await until(
    async () => /^round 5000 /.test(await chart.getAttribute("aria-valuetext")),
    "the last round, in detail",
  );
  assert.ok(series > 0 && series < 800_000, `${series} bytes`);
  assert.ok(at(0.5) < 50, `median frame ${at(0.5)} ms`);
  await end(page, trouble, server);
});
