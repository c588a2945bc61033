// What every agent gave and got: bars, scores and the matrix, as the summary has them.

import assert from "node:assert/strict";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { digits, fedstay, folder, header, open, useBrowser, view, writeRun } from "./common.mjs";

const WORTH = new URL("../../experiments/worth-unequal.toml", import.meta.url).pathname;
const chrome = useBrowser();
let runs;
let server;
before(async () => {
  runs = folder();
  fedstay("run", WORTH, "--set", "rounds=8", "--set", 'worth.methods=["help","loo","reputation"]', "--out", join(runs, "worth"));
  fedstay(...digits(join(runs, "without"), "rule.kind=fedavg", "rounds=5"));
  server = await view(runs);
});

const summary = () => JSON.parse(readFileSync(join(runs, "worth", "summary.json"), "utf8"));
const members = (page) => page.getByRole("region", { name: "What every agent gave and got" });
const numberOf = (text) => Number(text.replace("−", "-"));

async function opened(options) {
  const made = await open(chrome.context, server.url, options);
  await made.page.locator("#fold").evaluate((fold) => { fold.open = true; });
  await made.page.getByRole("link", { name: "worth" }).click();
  await made.page.locator(".progress", { hasText: "worth ·" }).waitFor();
  return made;
}

// A number on the page has as many digits as are shown.
function near(text, value, what) {
  const shown = text.includes(".") ? text.split(".")[1].length : 4;
  assert.ok(Math.abs(numberOf(text) - value) <= 0.5000001 * 10 ** -Math.min(shown, 4) || (text === "0" && Math.abs(value) < 0.005), `${what}: ${text} for ${value}`);
}

test("the table and the matrix are the summary's, and a bar is as long as its number", async () => {
  const { page, trouble } = await opened();
  const { agents, worth } = summary();
  const table = members(page).getByRole("region", { name: "Table: given and got" });
  assert.deepEqual(await table.locator("thead th").allTextContents(), ["agent", "balance", "given", "got", "given − got", "own", "unexplained", "leave-one-out", "reputation"]);
  const rows = table.locator("tbody tr");
  assert.equal(await rows.count(), 10);
  const ends = agents.flatMap((agent) => [agent.worth.given, agent.worth.got]);
  const span = Math.max(0, ...ends) - Math.min(0, ...ends);
  for (const [place, agent] of agents.entries()) {
    const row = rows.nth(place);
    assert.equal(await row.locator("th").textContent(), `agent ${agent.id}`);
    const { given, got, own, unexplained, loo, reputation } = agent.worth;
    const cells = (await row.locator("td").allTextContents()).slice(1);
    [given, got, given - got, own, unexplained, loo, reputation].forEach((value, i) => near(cells[i], value, `agent ${agent.id}, column ${i}`));
    const wide = (kind) => row.locator(`.bar-of-two .${kind}`).evaluate((bar) => bar.getBoundingClientRect().width / bar.parentElement.getBoundingClientRect().width);
    assert.ok(Math.abs((await wide("gave")) - Math.abs(given) / span) < 0.01, `agent ${agent.id} gave`);
    assert.ok(Math.abs((await wide("got")) - Math.abs(got) / span) < 0.01, `agent ${agent.id} got`);
  }
  const matrix = members(page).getByRole("region", { name: "Matrix: who helped whom" });
  assert.deepEqual(await matrix.locator("thead th").allTextContents(), ["helped \\ by", ...worth.agents.map((id) => `agent ${id}`)]);
  for (const [place, row] of worth.help.entries()) {
    const cells = await matrix.locator("tbody tr").nth(place).locator("td").allTextContents();
    row.forEach((value, by) => near(cells[by], value, `${place} by ${by}`));
  }
  // Colour is never the only sign: a loss that was raised has a minus.
  const minus = await matrix.locator("td.minus").evaluateAll((all) => all.map((one) => one.textContent));
  assert.ok(minus.length > 5 && minus.every((text) => text === "0" || text.startsWith("−")), minus.join());
  assert.deepEqual(trouble, []);
  await page.close();
});

test("it sorts by keyboard, the order is in the address, and the file has every number", async () => {
  const { page, trouble } = await opened();
  const { agents, worth } = summary();
  const head = members(page).getByRole("button", { name: "given", exact: true });
  await head.focus();
  await page.keyboard.press("Enter");
  const heads = (where) => members(where).locator(".balance tbody th").allTextContents();
  const wanted = [...agents].sort((a, b) => b.worth.given - a.worth.given).map((agent) => `agent ${agent.id}`);
  assert.deepEqual(await heads(page), wanted);
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "given", "the focus stays");
  assert.equal(await head.locator("..").getAttribute("aria-sort"), "descending");
  const again = await open(chrome.context, page.url());
  await members(again.page).locator(".balance tbody tr").nth(9).waitFor();
  assert.deepEqual(await heads(again.page), wanted);
  await again.page.close();
  await page.keyboard.press("Enter");
  assert.deepEqual(await heads(page), [...wanted].reverse());
  const [download] = await Promise.all([page.waitForEvent("download"), members(page).getByRole("button", { name: "CSV" }).click()]);
  assert.equal(download.suggestedFilename(), "worth-given-and-got.csv");
  const rows = readFileSync(await download.path(), "utf8").trim().split("\r\n").map((row) => row.split(","));
  assert.equal(rows.length, 11);
  const column = (name) => rows[0].indexOf(name);
  for (const [place, agent] of agents.entries()) {
    const row = rows[place + 1];
    assert.equal(row[0], `agent ${agent.id}`);
    assert.ok(Math.abs(Number(row[column("given")]) - agent.worth.given) < 1e-5);
    worth.help[place].forEach((value, by) => assert.ok(Math.abs(Number(row[column(`helped by agent ${by}`)]) - value) < 1e-5));
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test("forced colours tell given from got, and a phone reaches every column", async () => {
  const forced = await opened({ forced: true });
  const style = (kind) => forced.page.locator(`.balance .${kind}`).first().evaluate((bar) => [getComputedStyle(bar).backgroundColor, getComputedStyle(bar).borderTopWidth]);
  assert.notDeepEqual(await style("gave"), await style("got"));
  await forced.page.close();
  const { page, trouble } = await opened({ size: { width: 390, height: 844 } });
  const width = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(width[0] <= width[1], `nothing sticks out: ${width}`);
  for (const name of ["Table: given and got", "Matrix: who helped whom"]) {
    const part = members(page).getByRole("region", { name });
    await part.focus();
    await part.evaluate((one) => one.scrollTo(one.scrollWidth, 0));
    const last = await part.locator("thead th").last().boundingBox();
    assert.ok(last.x + last.width <= 390, `${name}: its last column can be reached`);
  }
  assert.deepEqual(trouble, []);
  await page.close();
});

test("a run under way has sums so far and no matrix, one without the book has neither", async () => {
  const live = folder();
  const line = (round, given) => ({ round, agents: [0, 1], loss: [1 / round, 2 / round], d: [], case: null, left: [], step_size: 0.1, step_norm: 0.1, stop: null, worth: { agents: [0, 1], given, got: [...given].reverse() } });
  writeRun(join(live, "grows"), header(2, 200), [line(1, [0, 0]), line(2, [0.25, -0.5])]);
  const own = await view(live);
  const { page, trouble } = await open(chrome.context, own.url);
  await members(page).getByText("So far, in rounds in which the agent reported").waitFor();
  const row = (id) => members(page).locator(".balance tbody tr").nth(id).locator("td").allTextContents();
  assert.deepEqual((await row(0)).slice(1), ["0.2500", "−0.5000", "0.7500"]);
  appendFileSync(join(live, "grows", "rounds.jsonl"), `${JSON.stringify(line(3, [0.5, 0.125]))}\n`);
  await page.locator(".progress", { hasText: "round 3" }).waitFor();
  assert.deepEqual((await row(0)).slice(1), ["0.7500", "−0.3750", "1.125"]);
  assert.equal(await members(page).getByRole("region", { name: "Matrix: who helped whom" }).count(), 0);
  const other = await open(chrome.context, server.url);
  await other.page.getByRole("link", { name: "without" }).click();
  await other.page.locator(".progress", { hasText: "without ·" }).waitFor();
  assert.equal(await members(other.page).count(), 0);
  assert.deepEqual([...trouble, ...other.trouble], []);
  await page.close();
  await other.page.close();
  own.stop();
});
