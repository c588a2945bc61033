// What every agent gave and got: bars, scores and the matrix, as the summary has them.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { digits, fedstay, folder, settings, worthRun } from "./command.mjs";
import { end, endBoth, open, useBrowser, view } from "./common.mjs";
import { falling, header, writeFinished, writeRun } from "./runs.mjs";

const chrome = useBrowser();
let runs;
let server;
before(async () => {
  runs = folder();
  fedstay(...worthRun(join(runs, "worth"), ["help", "loo", "reputation"], "rounds=8"));
  fedstay(...digits(join(runs, "without"), "rule.kind=fedavg", "rounds=5"));
  server = await view(runs);
});

const summary = () => JSON.parse(readFileSync(join(runs, "worth", "summary.json"), "utf8"));
const members = (page) => page.getByRole("region", { name: "What every agent gave and got" });
const numberOf = (text) => Number(text.replace("−", "-"));

async function opened(options) {
  const made = await open(chrome.context, server.url, options);
  await made.page.locator("#fold").evaluate((fold) => {
    fold.open = true;
  });
  await made.page.getByRole("link", { name: "worth" }).click();
  await made.page.locator(".progress", { hasText: "worth ·" }).waitFor();
  return made;
}

// A number on the page has as many digits as are shown.
function near(text, value, what) {
  const shown = text.includes(".") ? text.split(".")[1].length : 4;
  assert.ok(
    Math.abs(numberOf(text) - value) <= 0.5000001 * 10 ** -Math.min(shown, 4) ||
      (text === "0" && Math.abs(value) < 0.005),
    `${what}: ${text} for ${value}`,
  );
}

test("the table and the matrix are the summary's, and a bar is as long as its number", async () => {
  const { page, trouble } = await opened();
  const { agents, worth } = summary();
  const table = members(page).getByRole("region", { name: "Table: given and got" });
  assert.deepEqual(await table.locator("thead th").allTextContents(), [
    "agent",
    "balance",
    "given",
    "got",
    "given − got",
    "own",
    "unexplained",
    "leave-one-out",
    "reputation",
  ]);
  const rows = table.locator("tbody tr");
  assert.equal(await rows.count(), 10);
  const ends = agents.flatMap((agent) => [agent.worth.given, agent.worth.got]);
  const span = Math.max(0, ...ends) - Math.min(0, ...ends);
  for (const [place, agent] of agents.entries()) {
    const row = rows.nth(place);
    assert.equal(await row.locator("th").textContent(), `agent ${agent.id}`);
    const { given, got, own, unexplained, loo, reputation } = agent.worth;
    const cells = (await row.locator("td").allTextContents()).slice(1);
    [given, got, given - got, own, unexplained, loo, reputation].forEach((value, i) =>
      near(cells[i], value, `agent ${agent.id}, column ${i}`),
    );
    const wide = (kind) =>
      row
        .locator(`.bar-of-two .${kind}`)
        .evaluate(
          (bar) =>
            bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width,
        );
    assert.ok(
      Math.abs((await wide("gave")) - Math.abs(given) / span) < 0.01,
      `agent ${agent.id} gave`,
    );
    assert.ok(Math.abs((await wide("got")) - Math.abs(got) / span) < 0.01, `agent ${agent.id} got`);
  }
  const matrix = members(page).getByRole("region", { name: "Matrix: who helped whom" });
  assert.deepEqual(await matrix.locator("thead th").allTextContents(), [
    "helped \\ by",
    ...worth.agents.map((id) => `agent ${id}`),
  ]);
  for (const [place, row] of worth.help.entries()) {
    const cells = await matrix.locator("tbody tr").nth(place).locator("td").allTextContents();
    row.forEach((value, by) => near(cells[by], value, `${place} by ${by}`));
  }
  // Colour is never the only sign: a loss that was raised has a minus.
  const minus = await matrix
    .locator("td.minus")
    .evaluateAll((all) => all.map((one) => one.textContent));
  assert.ok(
    minus.length > 5 && minus.every((text) => text === "0" || text.startsWith("−")),
    minus.join(),
  );
  await end(page, trouble);
});

async function show(page, name) {
  await page
    .locator("#runs a", { has: page.locator(".name", { hasText: new RegExp(`^${name}$`) }) })
    .click();
  await page.locator(".progress", { hasText: `${name} ·` }).waitFor();
}

// The rows of the card by name: the whole number behind each, and what is shown of it.
async function figures(page, name) {
  await show(page, name);
  const card = page.getByRole("region", { name: "How the result is spread" });
  await card.waitFor();
  return new Map(
    await card
      .locator("dl > div")
      .evaluateAll((rows) =>
        rows.map((row) => [
          row.querySelector("dt").textContent,
          [row.querySelector("data").getAttribute("value"), row.querySelector("dd").textContent],
        ]),
      ),
  );
}

test("how the result is spread is the summary's, where a summary has it", async () => {
  const told = folder();
  // Two withdraw, so that the others' run ends in another round than it would have.
  const of =
    "behaviour.of=[{kind='withdrawing', agents=[2, 5], after=6}, {kind='threshold', share=1.0}]";
  fedstay(
    ...digits(
      join(told, "story"),
      "rule.kind=retain",
      "rounds=60",
      "partition.q=0.9",
      "behaviour.kind=mixed",
      of,
    ),
    "--story",
    "--counterfactual",
  );
  fedstay(...settings(join(told, "losses"), "problem.kind=observation-3", "rule.kind=fedavg"));
  const old = writeFinished(join(told, "old"), { rule: "fedavg" });
  writeFileSync(join(told, "old", "summary.json"), JSON.stringify({ ...old, population: null }));
  const own = await view(told);
  const { page, trouble } = await open(chrome.context, own.url);
  await page.locator("#fold").evaluate((fold) => {
    fold.open = true;
  });
  const summaryOf = (name) => JSON.parse(readFileSync(join(told, name, "summary.json"), "utf8"));

  const { fairness, population, agents, left, counterfactual } = summaryOf("story");
  const gone = new Set(left.map(({ agent }) => agent));
  assert.ok(
    gone.size > 0 && gone.size < agents.length,
    "somebody leaves and somebody stays, or there is no extra work",
  );
  const stayers = agents
    .map((agent, place) => [agent, counterfactual.reports[place]])
    .filter(([agent]) => !gone.has(agent.id));
  const rounds = stayers.reduce((sum, [agent, usual]) => sum + agent.reports - usual, 0);
  // Better is more of the unseen rows, or the smaller loss where there are none.
  const better = agents.filter(({ ends_with: ends, alone }) =>
    ends.unseen !== undefined && ends.unseen !== null
      ? ends.unseen > alone.unseen
      : ends.loss < alone.loss,
  ).length;
  const shares = (value) => `${(100 * value).toFixed(1)}%`;
  const sign = (value) => (value > 0 ? "+" : value < 0 ? "−" : "");
  const bytes = rounds * counterfactual.bytes_per_report;
  assert.ok(rounds !== 0 && fairness.with_alone !== undefined, "every figure has something to say");
  const wanted = [
    ["median agent’s accuracy", fairness.median, shares(fairness.median)],
    ["worst tenth’s accuracy", fairness.worst_decile, shares(fairness.worst_decile)],
    ["Jain’s index", fairness.jain, fairness.jain.toFixed(3)],
    ["Gini coefficient", fairness.gini, fairness.gini.toFixed(3)],
    [
      "correlation with what each makes alone",
      fairness.with_alone,
      fairness.with_alone?.toFixed(2).replace("-", "−"),
    ],
    ["better off than alone", better, `${better} of ${agents.length}`],
    ["population accuracy", population.accuracy, shares(population.accuracy)],
    ["population loss", population.loss, population.loss.toFixed(4)],
    ["extra rounds of those who stay", rounds, `${sign(rounds)}${Math.abs(rounds)}`],
    [
      "extra bytes of those who stay",
      bytes,
      `${sign(bytes)}${(Math.abs(bytes) / 1e6).toFixed(1)} MB`,
    ],
  ].filter(([, value]) => value !== undefined);
  const found = await figures(page, "story");
  assert.deepEqual(
    [...found],
    wanted.map(([name, value, text]) => [name, [String(value), text]]),
  );

  const losses = summaryOf("losses").fairness;
  const plain = await figures(page, "losses");
  assert.deepEqual(
    [...plain.keys()],
    ["median agent’s loss", "worst tenth’s loss", "Jain’s index", "Gini coefficient"],
  );
  assert.equal(Number(plain.get("median agent’s loss")[0]), losses.median);
  assert.equal(Number(plain.get("worst tenth’s loss")[0]), losses.worst_decile);

  // A summary without the figures, and a run under way, have no such card.
  await show(page, "old");
  assert.equal(await page.getByRole("region", { name: "How the result is spread" }).count(), 0);
  await end(page, trouble);
  own.stop();
});

test("it sorts by keyboard, the order is in the address, and the file has every number", async () => {
  const { page, trouble } = await opened();
  const { agents, worth } = summary();
  const head = members(page).getByRole("button", { name: "given", exact: true });
  await head.focus();
  await page.keyboard.press("Enter");
  const heads = (where) => members(where).locator(".balance tbody th").allTextContents();
  const wanted = [...agents]
    .sort((a, b) => b.worth.given - a.worth.given)
    .map((agent) => `agent ${agent.id}`);
  assert.deepEqual(await heads(page), wanted);
  assert.equal(
    await page.evaluate(() => document.activeElement.textContent),
    "given",
    "the focus stays",
  );
  assert.equal(await head.locator("..").getAttribute("aria-sort"), "descending");
  const again = await open(chrome.context, page.url());
  await members(again.page).locator(".balance tbody tr").nth(9).waitFor();
  assert.deepEqual(await heads(again.page), wanted);
  await again.page.close();
  await page.keyboard.press("Enter");
  assert.deepEqual(await heads(page), [...wanted].reverse());
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    members(page).getByRole("button", { name: "CSV" }).click(),
  ]);
  assert.equal(download.suggestedFilename(), "worth-given-and-got.csv");
  const rows = readFileSync(await download.path(), "utf8")
    .trim()
    .split("\r\n")
    .map((row) => row.split(","));
  assert.equal(rows.length, 11);
  const column = (name) => rows[0].indexOf(name);
  for (const [place, agent] of agents.entries()) {
    const row = rows[place + 1];
    assert.equal(row[0], `agent ${agent.id}`);
    assert.ok(Math.abs(Number(row[column("given")]) - agent.worth.given) < 1e-5);
    worth.help[place].forEach((value, by) =>
      assert.ok(Math.abs(Number(row[column(`helped by agent ${by}`)]) - value) < 1e-5),
    );
  }
  await end(page, trouble);
});

test("forced colours tell given from got, and a phone reaches every column", async () => {
  const forced = await opened({ forced: true });
  const style = (kind) =>
    forced.page
      .locator(`.balance .${kind}`)
      .first()
      .evaluate((bar) => [
        getComputedStyle(bar).backgroundColor,
        getComputedStyle(bar).borderTopWidth,
      ]);
  assert.notDeepEqual(await style("gave"), await style("got"));
  await forced.page.close();
  const { page, trouble } = await opened({ size: { width: 390, height: 844 } });
  const width = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    document.documentElement.clientWidth,
  ]);
  assert.ok(width[0] <= width[1], `nothing sticks out: ${width}`);
  for (const name of ["Table: given and got", "Matrix: who helped whom"]) {
    const part = members(page).getByRole("region", { name });
    await part.focus();
    await part.evaluate((one) => one.scrollTo(one.scrollWidth, 0));
    const last = await part.locator("thead th").last().boundingBox();
    assert.ok(last.x + last.width <= 390, `${name}: its last column can be reached`);
  }
  await end(page, trouble);
});

test("a run under way has sums so far and no matrix, one without the book has neither", async () => {
  const live = folder();
  const booked = (round, given) =>
    falling(round, { worth: { agents: [0, 1], given, got: [...given].reverse() } });
  writeRun(join(live, "grows"), header(2, 200), [booked(1, [0, 0]), booked(2, [0.25, -0.5])]);
  const own = await view(live);
  const { page, trouble } = await open(chrome.context, own.url);
  await members(page).getByText("So far, in rounds in which the agent reported").waitFor();
  const row = (id) =>
    members(page).locator(".balance tbody tr").nth(id).locator("td").allTextContents();
  assert.deepEqual((await row(0)).slice(1), ["0.2500", "−0.5000", "0.7500"]);
  appendFileSync(
    join(live, "grows", "rounds.jsonl"),
    `${JSON.stringify(booked(3, [0.5, 0.125]))}\n`,
  );
  await page.locator(".progress", { hasText: "round 3" }).waitFor();
  assert.deepEqual((await row(0)).slice(1), ["0.7500", "−0.3750", "1.125"]);
  assert.equal(
    await members(page).getByRole("region", { name: "Matrix: who helped whom" }).count(),
    0,
  );
  const other = await open(chrome.context, server.url);
  await other.page.getByRole("link", { name: "without" }).click();
  await other.page.locator(".progress", { hasText: "without ·" }).waitFor();
  assert.equal(await members(other.page).count(), 0);
  await endBoth({ page, trouble }, other, own);
});
