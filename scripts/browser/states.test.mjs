// Every state of a folder has its own words, and what is shown of a run is its own: margins,
// colours, a print.

import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { folder } from "./command.mjs";
import { end, open, useBrowser, view } from "./common.mjs";
import { header, roundLine, writeFinished, writeRun } from "./runs.mjs";

const chrome = useBrowser();

const CONFIG = '[rule]\nkind = "fedavg"\n';
const item = (page, name) =>
  page.locator("#runs li", { has: page.locator(".name", { hasText: new RegExp(`^${name}$`) }) });

test("an unknown run, a broken one, a stopped one, a diverged one and an empty folder have words of their own", async () => {
  const runs = folder();
  const old = Date.now() / 1000 - 120;
  const quiet = (name) => utimesSync(join(runs, name, "rounds.jsonl"), old, old);
  writeRun(join(runs, "waiting"), header(2, 50), [], CONFIG);
  writeRun(join(runs, "running"), header(2, 50), [roundLine(1, [1, 2])], CONFIG);
  writeRun(
    join(runs, "stopped"),
    header(2, 50),
    [roundLine(1, [1, 2]), roundLine(2, [0.9, 1.8])],
    CONFIG,
  );
  writeFileSync(join(runs, "stopped", "checkpoint"), "x");
  writeRun(
    join(runs, "diverged"),
    header(2, 50),
    [roundLine(1, [1, 2]), roundLine(2, [1e6, 8e6])],
    CONFIG,
  );
  writeRun(join(runs, "broken"), "what is this", [], CONFIG);
  for (const name of ["stopped", "diverged"]) quiet(name);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  for (const [name, head, tone, words, next] of [
    ["waiting", "Waiting", "open", "no round is over yet", null],
    ["running", "Running", "open", "Nobody is about to leave; all are still in.", null],
    [
      "stopped",
      "Stopped",
      "warn",
      "nobody was about to leave",
      /^To continue it: fedstay run --resume .*stopped$/,
    ],
    [
      "diverged",
      "Diverged",
      "bad",
      "steps are too long",
      /^To try it with shorter steps: .*step_size=SMALLER/,
    ],
    [
      "broken",
      "Unreadable",
      "warn",
      "cannot be shown",
      /^To compute it again: fedstay run .*broken\/config\.toml --out .*broken-again$/,
    ],
  ]) {
    await item(page, name).locator("a").click();
    await page.locator(".badge", { hasText: new RegExp(`^${head}$`) }).waitFor();
    assert.equal(await page.locator(".badge").getAttribute("data-tone"), tone, name);
    assert.ok((await page.locator(".words").first().textContent()).includes(words), name);
    const said = page.locator(".next");
    if (next) assert.match(await said.textContent(), next);
    else assert.ok(await said.isHidden(), name);
  }
  // No axes without a line, and nothing that is not shown is called shown.
  assert.equal(await page.locator(".plot:visible").count(), 0);
  assert.doesNotMatch(await page.locator(".trouble").textContent(), /everything else/);
  // A link to a run that is not here shows no other one.
  for (const asked of [
    "run=doesnotexist",
    "run=0123456789abcdef",
    "compare=0123456789abcdef,fedcba9876543210",
  ]) {
    await page.evaluate((hash) => {
      location.hash = hash;
    }, asked);
    await page.getByRole("heading", { name: "No such run" }).waitFor();
    assert.equal(await page.locator("article").count(), 0, asked);
  }
  await item(page, "running").locator("a").click();
  await page.locator(".badge", { hasText: "Running" }).waitFor();
  await end(page, trouble, server);

  const empty = await view(folder());
  const nothing = await open(chrome.context, empty.url, { empty: true });
  await nothing.page.locator(".next code", { hasText: "fedstay run --out DIR/first" }).waitFor();
  assert.ok(
    (await nothing.page.locator("#find").isHidden()) &&
      (await nothing.page.locator("#choose").isHidden()),
  );
  await nothing.page.close();
  empty.stop();
});

test("a run that is removed while it is shown is not replaced by another, and comes back", async () => {
  const runs = folder();
  writeRun(join(runs, "a"), header(2, 50), [roundLine(1, [1, 2])]);
  writeRun(join(runs, "b"), header(2, 50), [roundLine(1, [1, 2])]);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await page.locator(".progress", { hasText: /^a · round 1/ }).waitFor();
  rmSync(join(runs, "a"), { recursive: true });
  await page.getByRole("heading", { name: "No such run" }).waitFor();
  assert.match(await page.locator(".told .words").textContent(), /not in these folders any more/);
  // Also when the list has other news.
  writeRun(join(runs, "c"), header(2, 50), [roundLine(1, [1, 2])]);
  await item(page, "c").waitFor();
  assert.equal(await page.locator("article").count(), 0);
  writeRun(join(runs, "a"), header(2, 50), [roundLine(1, [1, 2]), roundLine(2, [1, 2])]);
  await page.locator(".progress", { hasText: /^a · round 2/ }).waitFor();
  await item(page, "c").locator("a").click();
  await page.locator(".progress", { hasText: /^c · round 1/ }).waitFor();
  await end(page, trouble, server);
});

test("a margin is that of the last exact loss, in the table and at the cursor", async () => {
  const runs = folder();
  const agents = [0, 1].map((id) => ({ id, epsilon: 0.1 }));
  const lines = [
    roundLine(345, [0.57, null]),
    roundLine(346, [0.115, 0.115], { at_least: [0, 1] }),
  ];
  writeRun(join(runs, "bounds"), header(2, 600, { agents }), lines);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, `${server.url}#margin=1`);
  const row = page.locator('[aria-label="Agents"] tbody tr');
  assert.match(await row.nth(0).textContent(), /0\.5700 \(in 345\)0\.10000\.4700 \(in 345\)/);
  assert.match(await row.nth(1).textContent(), /≥ 0\.1150.*≥ 0\.0150/);
  const chart = page.getByRole("slider", { name: "chart of losses" });
  await chart.focus();
  await page.keyboard.press("Home");
  assert.match(
    await chart.getAttribute("aria-valuetext"),
    /1 margin known, from 0\.4700 to 0\.4700/,
  );
  await page.keyboard.press("Space");
  assert.match(await page.locator(".pinned:visible li").first().textContent(), /agent 00\.4700$/);
  assert.doesNotMatch(await row.nth(0).textContent(), /0\.0150/);
  await end(page, trouble, server);
});

test("a run's colour is its own: after a reload, beside a broken run, and in another folder", async () => {
  const looks = async (page) =>
    Object.fromEntries(
      await page.locator("#runs li").evaluateAll((all) =>
        all.map((one) => {
          const style = getComputedStyle(one.querySelector(".swatch"));
          return [
            one.querySelector(".name").textContent,
            `${style.borderTopColor} ${style.maskImage}`,
          ];
        }),
      ),
    );
  const [here, there] = [folder(), folder()];
  writeFinished(join(here, "mine"), { rule: "fedavg" });
  const servers = [await view(here)];
  const { page, trouble } = await open(chrome.context, servers[0].url);
  const mine = (await looks(page)).mine;
  // One that cannot be read has no time at which it began; it takes nobody's look.
  mkdirSync(join(here, "broken"));
  writeFileSync(join(here, "broken", "rounds.jsonl"), "garbage\n");
  await item(page, "broken").waitFor();
  await new Promise((done) => setTimeout(done, 50));
  writeFinished(join(here, "later"), { rule: "fedavg", seed: 1 });
  await item(page, "later").waitFor();
  const before = await looks(page);
  assert.equal(before.mine, mine);
  await page.reload();
  await item(page, "later").waitFor();
  assert.deepEqual(await looks(page), before);
  // The same run, beside others that began before it and have other names.
  for (const name of ["a", "b"]) writeFinished(join(there, name), { rule: "retain" });
  await new Promise((done) => setTimeout(done, 50));
  mkdirSync(join(there, "mine"));
  for (const file of ["rounds.jsonl", "summary.json", "config.toml"])
    copyFileSync(join(here, "mine", file), join(there, "mine", file));
  servers.push(await view(there));
  const other = await open(chrome.context, servers[1].url);
  assert.equal((await looks(other.page)).mine, mine);
  assert.deepEqual([...trouble, ...other.trouble], []);
  for (const each of [page, other.page]) await each.close();
  for (const server of servers) server.stop();
});

test("a print keeps what was chosen and loses what can only be pressed", async () => {
  const runs = folder();
  writeFinished(join(runs, "one"), { rule: "fedavg" });
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, `${server.url}#log=1`, { scheme: "dark" });
  await page.emulateMedia({ media: "print", colorScheme: "dark" });
  await page.evaluate(() => dispatchEvent(new Event("beforeprint")));
  const choices = page.locator('[aria-label="Scale of the losses"] button');
  assert.deepEqual(
    await choices.evaluateAll((all) =>
      all.filter((one) => one.checkVisibility()).map((one) => one.textContent),
    ),
    ["log"],
  );
  const exact = (selector) =>
    page
      .locator(selector)
      .first()
      .evaluate((one) => getComputedStyle(one).printColorAdjust);
  for (const selector of [".badge", ".swatch.free", ".choice button[aria-pressed=true]"])
    assert.equal(await exact(selector), "exact", selector);
  for (const selector of ["nav.runs", ".save", ".zoom .choice", "#theme"])
    assert.ok(await page.locator(selector).first().isHidden(), selector);
  assert.equal(
    await page
      .locator("section.card")
      .first()
      .evaluate((one) => getComputedStyle(one).breakInside),
    "avoid",
  );
  // A dark page is printed on white paper, and is dark again afterwards.
  const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
  assert.equal(await theme(), "light");
  await page.evaluate(() => dispatchEvent(new Event("afterprint")));
  assert.equal(await theme(), "dark");
  await end(page, trouble, server);
});

test("a window that nobody sees has no stream of events, and has everything once it is seen", async () => {
  const runs = folder();
  writeRun(join(runs, "grows"), header(2, 50), [roundLine(1, [1, 2])]);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const see = (hidden) =>
    page.evaluate((now) => {
      Object.defineProperty(document, "hidden", { value: now, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  const streams = [];
  page.on("request", (request) => {
    if (request.url().endsWith("/api/events")) streams.push(request.url());
  });
  await see(true);
  rmSync(join(runs, "grows", "rounds.jsonl"));
  writeRun(join(runs, "grows"), header(2, 50), [roundLine(1, [1, 2]), roundLine(2, [1, 2])]);
  await new Promise((done) => setTimeout(done, 1500));
  assert.match(await page.locator(".progress").textContent(), /round 1 /, "nobody looks");
  assert.equal(streams.length, 0);
  await see(false);
  await page.locator(".progress", { hasText: "round 2 " }).waitFor();
  assert.equal(streams.length, 1);
  await end(page, trouble, server);
});

test("numbers of agents are steps, and lines that leave the chart say so", async () => {
  const runs = folder();
  const assessed = (round, loss) =>
    roundLine(round, loss, { assessment: { loss, accuracy: [0.5, 0.5], population: null } });
  const lines = Array.from({ length: 40 }, (_, i) =>
    assessed(i + 1, [1 / (i + 1), i < 20 ? 1 : 30]),
  );
  // The second agent leaves in round 20; after that its loss is far above everything it decided on.
  for (let i = 20; i < 40; i += 1) Object.assign(lines[i], { agents: [0], loss: [1 / (i + 1)] });
  lines[19].left = [1];
  writeRun(join(runs, "one"), header(2, 40), lines);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await page
    .locator('[aria-label="Every agent’s loss against its target loss"] .legend', {
      hasText: "goes on above",
    })
    .waitFor();
  const download = page.waitForEvent("download");
  const card = page.getByRole("region", {
    name: "How many are still in, and how many are content",
    exact: true,
  });
  await card.getByRole("button", { name: /SVG/ }).click();
  const stream = await (await download).createReadStream();
  let svg = "";
  for await (const part of stream) svg += part;
  // Only to the side or straight up and down.
  const path = svg.match(
    /<path d="(M[^"]*)" fill="none" stroke="#767676"[^>]*stroke-width="2\.1"/,
  )[1];
  const points = path
    .slice(1)
    .split(/[ML]/)
    .map((point) => point.split(" ").map(Number));
  assert.ok(points.length > 40);
  for (let i = 1; i < points.length; i += 1)
    assert.ok(
      points[i][0] === points[i - 1][0] || points[i][1] === points[i - 1][1],
      `${points[i - 1]} to ${points[i]}`,
    );
  assert.equal(new Set(points.map(([, y]) => y)).size, 2);
  await end(page, trouble, server);
});
