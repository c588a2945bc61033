// The list of runs and the comparison: found by key, grouped, hidden, sorted, told apart.

import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { folder } from "./command.mjs";
import { end, endBoth, open, until, useBrowser, view } from "./common.mjs";
import { header, roundLine, writeFinished, writeHundred, writeRun } from "./runs.mjs";

const chrome = useBrowser();

const names = (page) => page.locator("#runs .name").allTextContents();
const results = (page) => page.getByRole("region", { name: "Table: Results" });

// Two rules × two values of q × three seeds.
function study() {
  const runs = folder();
  for (const rule of ["retain", "fedavg"]) {
    for (const q of [0.4, 0.9]) {
      for (const seed of [0, 1, 2]) {
        const mean = (rule === "retain" ? 0.9 : 0.6) + seed / 100;
        writeFinished(join(runs, `${rule}-${q}-${seed}`), {
          rule,
          q,
          seed,
          mean,
          verdict: rule === "retain" ? "retained" : "harmful",
          rounds: rule === "retain" ? 20 : 12,
        });
      }
    }
  }
  return runs;
}

async function compareAll(page) {
  await page.locator("#choose").click();
  await page.locator("#compare").click();
}

test("runs are found by name, verdict and key, and the search is in the address", async () => {
  const server = await view(study());
  const { page, trouble } = await open(chrome.context, server.url);
  assert.equal((await names(page)).length, 12);
  const finds = async (text, count) => {
    await page.locator("#find").fill(text);
    await until(async () => (await names(page)).length === count, `${text}: ${count}`, 3000);
  };
  await finds("q>0.5 rule=retain", 3);
  assert.deepEqual(await names(page), ["retain-0.9-0", "retain-0.9-1", "retain-0.9-2"]);
  assert.match(page.url(), /find=/);
  await finds("harmful", 6);
  await finds("partition.q<=0.4 -fedavg seed!=0", 2);
  await finds("accuracy>80%", 6);
  await finds("rule~ret seed=1", 2);
  await finds("nothing-has-this-name", 0);
  await page.getByText("No run matches.").waitFor();
  await finds("colour=red", 0);
  await page.getByText("No run has the key colour").waitFor();
  await finds("seed=2", 4);
  assert.equal(await page.locator("#count").textContent(), "(4 of 12)");
  // The address alone restores it, and a run that is opened keeps it.
  await page.locator("#runs a").first().click();
  await page.getByRole("heading", { level: 1, name: "fedavg on digits, seed 2" }).waitFor();
  assert.equal((await names(page)).length, 4);
  const again = await open(chrome.context, page.url());
  assert.equal((await names(again.page)).length, 4);
  assert.equal(await again.page.locator("#find").inputValue(), "seed=2");
  // Sorted by what came of it.
  await again.page.locator("#find").fill("");
  await again.page.locator("#sort").selectOption("accuracy");
  await until(async () => (await names(again.page))[11] === "retain-0.9-2", "the best is last");
  await endBoth({ page, trouble }, again, server);
});

test("groups have a mean and a band over seeds, in chart, list and table", async () => {
  const server = await view(study());
  const { page, trouble } = await open(chrome.context, server.url);
  await compareAll(page);
  await until(async () => (await results(page).locator("tbody tr").count()) === 12, "all rows");
  await page.getByLabel("group by").selectOption("rule");
  await until(async () => (await results(page).locator("tbody tr").count()) === 2, "two groups");
  const rows = await results(page).locator("tbody tr").allTextContents();
  // Of fedavg's six runs: 0.55, 0.56, 0.57, twice.
  assert.ok(
    rows.some(
      (row) =>
        row.includes("fedavg (6)") && row.includes("Harmful") && row.includes("56.0% ± 0.9%"),
    ),
    rows.join("\n"),
  );
  const chart = page.getByRole("slider", { name: "Mean over all agents" });
  await chart.focus();
  await page.keyboard.press("End");
  assert.match(await chart.getAttribute("aria-valuetext"), /fedavg: ended in 12, delivered 56\.0%/);
  await page.keyboard.press("Space");
  const pinned = page.getByRole("group", { name: "Values at the pinned round" }).first();
  // Sorted, the largest first, with the band's ends.
  const values = await pinned.locator("li").allTextContents();
  assert.match(values[0], /^retain.*86\.0% \(85\.0% to 87\.0%\)$/);
  assert.match(values[1], /^fedavg.*56\.0% \(55\.0% to 57\.0%\)$/);
  await page.getByLabel("group by").selectOption("partition.q");
  await until(
    async () =>
      (await results(page).locator("tbody th").allTextContents())
        .join()
        .includes("partition.q = 0.4 (6)"),
    "by q",
  );
  // The address alone restores group and pin.
  await page.getByRole("button", { name: "± standard deviation" }).click();
  const again = await open(chrome.context, page.url());
  await until(
    async () => (await results(again.page).locator("tbody tr").count()) === 2,
    "the group",
  );
  assert.equal(await again.page.getByLabel("group by").inputValue(), "partition.q");
  assert.equal(
    await again.page
      .getByRole("button", { name: "± standard deviation" })
      .getAttribute("aria-pressed"),
    "true",
  );
  await again.page.getByRole("group", { name: "Values at the pinned round" }).first().waitFor();
  await endBoth({ page, trouble }, again, server);
});

test("lines are hidden and shown alone, columns chosen and sorted, settings compared", async () => {
  const server = await view(study());
  const { page, trouble } = await open(chrome.context, server.url);
  await page.locator("#find").fill("seed=0");
  await until(async () => (await names(page)).length === 4, "four runs");
  await compareAll(page);
  await until(async () => (await results(page).locator("tbody tr").count()) === 4, "all rows");
  const chart = page.getByRole("slider", { name: "Mean over all agents" });
  const said = async () => {
    await chart.focus();
    await page.keyboard.press("Home");
    return chart.getAttribute("aria-valuetext");
  };
  assert.match(await said(), /retain-0\.4-0/);
  const legend = page.getByRole("group", { name: "Lines: press to hide or show" });
  await legend.getByRole("button", { name: "retain-0.4-0", exact: true }).click();
  assert.doesNotMatch(await said(), /retain-0\.4-0/);
  await legend.getByRole("button", { name: "Show only fedavg-0.9-0" }).click();
  assert.match(await said(), /^round 1 · fedavg-0\.9-0 [\d.]+%$/);
  const again = await open(chrome.context, page.url());
  await until(
    async () => (await again.page.locator('.line[data-off="true"]').count()) === 3,
    "the solo is in the address",
  );
  await again.page.close();
  await legend.getByRole("button", { name: "show all" }).click();
  assert.match(await said(), /fedavg-0\.4-0.*retain-0\.9-0/);

  // The same colour, pattern and name, whatever else is chosen: in the list, in the legend, in the
  // table.
  const colour = (place) =>
    place
      .locator(".swatch")
      .first()
      .evaluate(
        (sign) => `${getComputedStyle(sign).borderTopColor} ${getComputedStyle(sign).maskImage}`,
      );
  const listed = await colour(page.locator("#runs li", { hasText: "retain-0.9-0" }));
  assert.equal(await colour(page.locator(".line", { hasText: "retain-0.9-0" })), listed);
  assert.equal(await colour(results(page).locator("tr", { hasText: "retain-0.9-0" })), listed);
  assert.equal(
    new Set(await Promise.all((await page.locator(".line").all()).map(colour))).size,
    4,
    "four looks",
  );

  const column = () => results(page).locator("tbody th").allTextContents();
  const head = results(page).getByRole("button", { name: "mean accuracy" });
  await head.click();
  assert.match((await column())[0], /^fedavg/);
  await head.click();
  assert.match((await column())[0], /^retain/);
  await page.getByText("Columns", { exact: true }).click();
  await page.getByRole("checkbox", { name: "partition.q" }).check();
  await page.getByRole("checkbox", { name: "population" }).uncheck();
  const heads = await results(page).locator("thead th").allTextContents();
  assert.ok(heads.includes("partition.q") && !heads.includes("population"), heads.join());

  const diff = page.getByRole("region", { name: "Configuration, what differs" });
  assert.deepEqual(await diff.locator("tbody th").allTextContents(), ["partition.q", "rule.kind"]);
  assert.deepEqual(await diff.locator("tbody tr").first().locator("td").allTextContents(), [
    "0.4",
    "0.9",
    "0.4",
    "0.9",
  ]);
  await diff.getByText("What they share").click();
  assert.match(await diff.locator("pre").textContent(), /^epsilon = 0\.2$/m);
  assert.deepEqual(trouble, []);

  // And all of them as a table.
  await page.getByRole("link", { name: "All runs as a table" }).click();
  await page.getByRole("heading", { name: "All runs" }).waitFor();
  assert.equal(await page.locator(".results tbody tr").count(), 4);
  await page.locator("#find").fill("");
  await until(
    async () => (await page.locator(".results tbody tr").count()) === 12,
    "the table follows the search",
  );
  await end(page, trouble, server);
});

test("a comparison is zoomed by pointer and keyboard, and then has every single round", async () => {
  const runs = folder();
  // Good in even rounds, bad in odd ones: thinned, no round has the good value for its own.
  const write = (name, rule, good) => {
    const lines = Array.from({ length: 3000 }, (_, i) => {
      const share = (i + 1) % 2 ? 0.1 : good;
      return roundLine(i + 1, [1 - share, 1 - share], {
        assessment: { loss: [1 - share, 1 - share], accuracy: [share, share], population: null },
      });
    });
    writeRun(join(runs, name), header(2, 4000, { rule, on: "digits" }), lines);
  };
  write("one", "fedavg", 0.9);
  write("two", "retain", 0.8);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  await compareAll(page);
  await until(async () => (await results(page).locator("tbody tr").count()) === 2, "both runs");
  const chart = page.getByRole("slider", { name: "Mean over all agents" });
  const said = () => chart.getAttribute("aria-valuetext");
  const shown = () =>
    page.getByRole("group", { name: "Rounds shown" }).locator("span").first().textContent();
  const box = await chart.boundingBox();
  const at = (share) => box.x + 58 + share * (box.width - 74);
  await page.mouse.move(at(0.5), box.y + 100);
  assert.match(await said(), /one 10\.0% · two 10\.0%$/, "thinned to the smallest of a few rounds");
  await page.mouse.move(at(0.5), box.y + 100);
  await page.mouse.down();
  await page.mouse.move(at(0.52), box.y + 100);
  await page.mouse.move(at(0.53), box.y + 100);
  await page.mouse.up();
  await until(async () => !(await shown()).startsWith("rounds 1 to"), "a part of the rounds");
  const [from, to] = (await shown()).match(/\d+/g).map(Number);
  assert.ok(to - from < 200, `${from} to ${to}`);
  await page.mouse.move(5, 5);
  await chart.focus();
  const goodRound = async () => {
    for (let i = 0; i < 2 && !/one 90\.0% · two 80\.0%$/.test(await said()); i += 1)
      await page.keyboard.press("ArrowLeft");
    return /^round \d*[02468] · one 90\.0% · two 80\.0%$/.test(await said());
  };
  await until(goodRound, "every single round");
  await page.keyboard.press("ArrowLeft");
  assert.match(await said(), /^round \d*[13579] · one 10\.0% · two 10\.0%$/);
  // In groups too; and the address alone restores it.
  await page.getByLabel("group by").selectOption("data");
  await chart.focus();
  await page.keyboard.press("ArrowRight");
  const grouped = /^round \d*[02468] · data = digits 85\.0%$/;
  assert.match(await said(), grouped);
  const again = await open(chrome.context, page.url());
  await until(
    async () => (await results(again.page).locator("tbody tr").count()) === 1,
    "the group",
  );
  const other = again.page.getByRole("slider", { name: "Mean over all agents" });
  await other.focus();
  await until(async () => {
    await again.page.keyboard.press("ArrowLeft");
    return grouped.test(await other.getAttribute("aria-valuetext"));
  }, "single rounds from the address");
  // By keyboard: all rounds, then nearer again.
  await chart.focus();
  await page.keyboard.press("0");
  await until(async () => (await shown()).startsWith("rounds 1 to"), "all rounds");
  await page.keyboard.press("Home");
  for (let i = 0; i < 5; i += 1) await page.keyboard.press("+");
  await until(async () => {
    await page.keyboard.press("ArrowRight");
    return grouped.test(await said());
  }, "single rounds by keyboard");
  await endBoth({ page, trouble }, again, server);
});

test("a run keeps its colour and pattern when others appear, and rules keep theirs", async () => {
  const runs = study();
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url);
  const looks = async (of) =>
    Object.fromEntries(
      await of.locator("#runs li").evaluateAll((all) =>
        all.map((one) => {
          const style = getComputedStyle(one.querySelector(".swatch"));
          return [
            one.querySelector(".name").textContent,
            `${style.borderTopColor} ${style.maskImage}`,
          ];
        }),
      ),
    );
  const before = await looks(page);
  assert.equal(new Set(Object.values(before)).size, 12, "twelve looks");
  // Whatever else is there, one run of a rule has the colours the rule has in every drawing.
  for (const [rule, colour] of [
    ["fedavg", "rgb(213, 94, 0)"],
    ["retain", "rgb(0, 158, 115)"],
  ]) {
    assert.ok(
      Object.entries(before).some(
        ([name, look]) => name.startsWith(rule) && look.startsWith(colour),
      ),
      rule,
    );
  }
  // A name that is sorted first takes nobody's look, in this window or in the next.
  await new Promise((done) => setTimeout(done, 50));
  writeFinished(join(runs, "0-later"), { rule: "fedavg" });
  await page.locator("#runs li", { hasText: "0-later" }).waitFor();
  const again = await open(chrome.context, server.url);
  for (const after of [await looks(page), await looks(again.page)]) {
    const { "0-later": later, ...others } = after;
    assert.deepEqual(others, before);
    assert.ok(!Object.values(before).includes(later));
  }
  await endBoth({ page, trouble }, again, server);
});

test("100 runs compared stay readable", async () => {
  const runs = folder();
  writeHundred(runs);
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, {
    size: { width: 1280, height: 1000 },
  });
  await page.locator("#choose").click();
  const since = Date.now();
  await page.locator("#compare").click();
  await until(async () => (await results(page).locator("tbody tr").count()) === 100, "100 rows");
  console.log(`100 runs compared: all rows after ${Date.now() - since} ms`);
  // The legend leaves the charts in sight, and the page does not grow sideways.
  const legend = await page.locator(".legend.lines").boundingBox();
  assert.ok(legend.height < 160, `a legend of ${legend.height} px`);
  const chart = page.getByRole("slider", { name: "Mean over all agents" });
  const box = await chart.boundingBox();
  assert.ok(box.y < 700, `the first chart begins at ${box.y} px`);
  const width = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(width[0] <= width[1], `nothing sticks out: ${width}`);
  // At the cursor some values are listed, and all once it is pinned.
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await chart.locator(".values li", { hasText: "more: click to see all" }).waitFor();
  await page.mouse.down();
  await page.mouse.up();
  await until(async () => (await page.locator(".pinned li").count()) >= 100, "all values");
  await page.getByLabel("group by").selectOption("rule");
  await until(
    async () => (await results(page).locator("tbody tr").count()) === 4,
    "four groups of 25",
  );
  await end(page, trouble, server);
});
