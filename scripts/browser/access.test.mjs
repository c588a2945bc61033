// For everybody: axe-core in every state, forced colours, small screens, large letters, the report.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { before, test } from "node:test";
import { digits, fedstay, folder, mapped, worthRun } from "./command.mjs";
import { end, open, until, useBrowser, view } from "./common.mjs";
import { falling, header, writeRun } from "./runs.mjs";

const require = createRequire(join(process.env.TOOLS, "node_modules/"));
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");

const chrome = useBrowser();
let runs;
let server;
before(async () => {
  runs = folder();
  mapped(join(runs, "map"));
  fedstay(...digits(join(runs, "averaging"), "rule.kind=fedavg"), "--counterfactual");
  fedstay(...digits(join(runs, "retain"), "rule.kind=retain"));
  const near = (round) => falling(round, { d: round > 10 ? [0] : [], case: 1 });
  fedstay(...worthRun(join(runs, "worth"), ["help", "cgsv"], "rounds=5"));
  writeRun(
    join(runs, "live"),
    header(2, 200),
    Array.from({ length: 20 }, (_, i) => near(i + 1)),
  );
  server = await view(runs);
});

// axe-core runs beside the page, by the browser's debugger: the page's own policy forbids other
// scripts.
async function violations(page) {
  const session = await page.context().newCDPSession(page);
  await session.send("Runtime.evaluate", { expression: AXE });
  const { result } = await session.send("Runtime.evaluate", {
    expression:
      "axe.run().then((found) => JSON.stringify(found.violations.map((one) => [one.id, " +
      "one.impact, one.nodes.slice(0, 4).map((node) => node.html.slice(0, 200))])))",
    awaitPromise: true,
  });
  await session.detach();
  return JSON.parse(result.value);
}

async function noOverflow(page) {
  const width = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(width[0] <= width[1], `nothing sticks out: ${width}`);
}

const to = (name) => async (page) => {
  await page.locator("#fold").evaluate((fold) => {
    fold.open = true;
  });
  await page.getByRole("link", { name }).first().click();
  await page.locator(".progress", { hasText: `${name} ·` }).waitFor();
};
const compare = async (page) => {
  await page.locator("#find").fill("digits -worth");
  await page.locator("#choose").click();
  await page.locator("#compare").click();
  await until(async () => (await page.locator(".results tbody tr").count()) === 2, "both runs");
};
const grouped = async (page) => {
  await compare(page);
  await page.getByLabel("group by").selectOption("rule");
  await page.getByRole("slider", { name: "Mean over" }).focus();
  await page.keyboard.press("Space");
};
const pinned = async (page) => {
  await to("averaging")(page);
  await page.getByRole("slider", { name: "chart of losses" }).focus();
  await page.keyboard.press("+");
  await page.keyboard.press("Space");
};

const STATES = {
  light: [{}, to("averaging")],
  dark: [{ scheme: "dark" }, to("averaging")],
  "forced colours": [{ forced: true }, to("averaging")],
  phone: [{ size: { width: 390, height: 844 } }, to("averaging")],
  "320 px": [{ size: { width: 320, height: 640 } }, to("retain")],
  "zoom 200%": [{ size: { width: 640, height: 450 } }, to("averaging")],
  "2560 px": [{ size: { width: 2560, height: 1440 } }, to("retain")],
  live: [{}, to("live")],
  finished: [{}, to("retain")],
  comparison: [{}, compare],
  "comparison in the dark": [{ scheme: "dark" }, compare],
  "grouped comparison, pinned": [{}, grouped],
  "comparison on a phone": [
    { size: { width: 390, height: 844 } },
    async (page) => {
      await page.locator("#fold").evaluate((fold) => {
        fold.open = true;
      });
      await compare(page);
    },
  ],
  "zoomed in and pinned": [{}, pinned],
  map: [{}, to("map")],
  "given and got": [{}, to("worth")],
  "given and got in the dark": [{ scheme: "dark" }, to("worth")],
  "given and got in forced colours": [{ forced: true }, to("worth")],
  "given and got at 320 px": [{ size: { width: 320, height: 640 } }, to("worth")],
  "all runs": [
    {},
    async (page) => {
      await page.getByRole("link", { name: "All runs as a table" }).click();
      await page.locator(".results tbody tr").nth(4).waitFor();
    },
  ],
  "nothing found": [
    {},
    async (page) => {
      await page.locator("#find").fill("zzz");
      await page.getByText("No run matches").waitFor();
    },
  ],
};

for (const [name, [options, act]] of Object.entries(STATES)) {
  test(`axe-core finds nothing: ${name}`, async () => {
    const { page, trouble } = await open(chrome.context, server.url, options);
    await act(page);
    await page.waitForTimeout(200);
    assert.deepEqual(await violations(page), []);
    await noOverflow(page);
    assert.deepEqual(trouble, []);
    await page.close();
  });
}

test("axe-core finds nothing: empty", async () => {
  const empty = await view(folder());
  const { page, trouble } = await open(chrome.context, empty.url, { empty: true });
  await page.getByText("There is no run in these folders yet").waitFor();
  assert.deepEqual(await violations(page), []);
  await end(page, trouble);
  empty.stop();
});

test("axe-core finds nothing in a report, of one run and of several", async () => {
  const several = join(runs, "several.html");
  fedstay("report", join(runs, "averaging"), join(runs, "retain"), "-o", several);
  for (const file of [
    join(runs, "averaging", "report.html"),
    join(runs, "map", "report.html"),
    several,
  ]) {
    const page = await chrome.context.newPage();
    await page.goto(pathToFileURL(file).href);
    assert.deepEqual(await violations(page), [], file);
    assert.equal(await page.locator("main").count(), 1);
    const unnamed = await page
      .locator("svg")
      .evaluateAll(
        (all) => all.filter((one) => !one.querySelector(":scope > title")?.textContent).length,
      );
    assert.equal(unnamed, 0, "every drawing has a name");
    await page.close();
  }
});

test("sliders have a value from the start, headings go down one level at a time", async () => {
  const { page } = await open(chrome.context, server.url);
  await to("averaging")(page);
  const { rounds } = JSON.parse(readFileSync(join(runs, "averaging", "summary.json"), "utf8"));
  const sliders = await page
    .getByRole("slider")
    .evaluateAll((all) =>
      all.map((one) => [
        one.getAttribute("aria-valuenow"),
        one.getAttribute("aria-valuetext"),
        one.getAttribute("aria-valuemax"),
      ]),
    );
  assert.equal(sliders.length, 5);
  for (const [now, text, most] of sliders)
    assert.deepEqual([now, text, most], [String(rounds), "no round chosen", String(rounds)]);
  const levels = await page
    .locator("main :is(h1, h2, h3, h4)")
    .evaluateAll((all) =>
      all.filter((one) => one.checkVisibility()).map((one) => Number(one.tagName[1])),
    );
  levels.forEach((level, i) =>
    assert.ok(i === 0 ? level === 1 : level <= levels[i - 1] + 1, levels.join()),
  );
  await page.close();
});

test("forced colours keep pressed states, the current run and the lines' signs", async () => {
  const { page } = await open(chrome.context, server.url, { forced: true });
  await to("averaging")(page);
  const style = (place, name) =>
    place.evaluate((one, wanted) => getComputedStyle(one)[wanted], name);
  const [on, off] = [
    page.getByRole("button", { name: "linear" }),
    page.getByRole("button", { name: "log" }),
  ];
  assert.notEqual(await style(on, "backgroundColor"), await style(off, "backgroundColor"));
  assert.notEqual(await style(on, "textDecorationLine"), await style(off, "textDecorationLine"));
  const colours = await page
    .locator('[aria-label^="Every agent"] .legend .swatch.dash')
    .evaluateAll((all) => all.map((one) => getComputedStyle(one).borderTopColor));
  assert.ok(new Set(colours).size >= 6, `agents' colours: ${new Set(colours).size}`);
  const current = page.locator("#runs li", { has: page.locator("[aria-current]") });
  assert.equal(await style(current, "outlineStyle"), "solid");
  await page.close();
});

test("320 px and 200%: tables scroll inside their frame and say so, and the list is folded", async () => {
  for (const size of [
    { width: 320, height: 640 },
    { width: 640, height: 450 },
  ]) {
    const { page } = await open(chrome.context, server.url, { size });
    assert.equal(await page.locator("#fold").evaluate((fold) => fold.open), false);
    await to("averaging")(page);
    await noOverflow(page);
    const table = page.getByRole("region", { name: "Table of agents" });
    const [inner, outer] = await table.evaluate((one) => [one.scrollWidth, one.clientWidth]);
    assert.ok(inner > outer, "there is more to the side");
    assert.match(await table.evaluate((one) => getComputedStyle(one).backgroundImage), /gradient/);
    await table.focus();
    await page.keyboard.press("End");
    await table.evaluate((one) => one.scrollTo(one.scrollWidth, 0));
    const last = await table.locator("thead th").last().boundingBox();
    assert.ok(last.x + last.width <= size.width, "its last column can be reached");
    await page.close();
  }
});
