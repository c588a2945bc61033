// A run on real Flower processes, watched while it is under way.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { folder } from "./command.mjs";
import { browser, end, open, stopServers, until, view } from "./common.mjs";

const SCRIPT = new URL("flower.py", import.meta.url).pathname;
let chrome;
let flower;
before(async () => {
  chrome = await browser();
});
after(async () => {
  if (flower && flower.exitCode === null) flower.kill();
  stopServers();
  await chrome.close();
});

test("a Flower run is watched live: rounds come in, an agent leaves, the verdict appears", async () => {
  const runs = folder();
  const server = await view(runs);
  const { page, trouble } = await open(chrome.context, server.url, { empty: true });
  await page.getByText("There is no run in these folders yet").waitFor();
  const words = [SCRIPT, join(runs, "flower"), join(folder(), "federation")];
  flower = spawn(process.env.FLOWER_PYTHON, words, { stdio: ["ignore", "inherit", "inherit"] });
  const over = new Promise((resolve) => flower.on("exit", resolve));

  await page.locator(".badge", { hasText: "Running" }).waitFor({ timeout: 240000 });
  await page.getByRole("heading", { name: /^fedavg on bowls/ }).waitFor();
  const round = async () =>
    Number((await page.locator(".progress").textContent()).match(/round (\d+)/)[1]);
  const early = await round();
  assert.ok(early < 4, `seen while it runs, in round ${early}`);
  // Agents have the names of their nodes.
  for (const name of ["a", "b", "c"])
    await page.getByRole("button", { name, exact: true }).waitFor();
  await until(async () => (await round()) > early, "the next round", 120000);
  await page
    .locator("tr", { has: page.getByRole("button", { name: "b", exact: true }) })
    .locator("td", { hasText: /^(left in )?3$/ })
    .waitFor({ timeout: 120000 });
  assert.equal(await over, 0, "the federation ended well");
  await page.locator(".badge", { hasText: /Harmful|Benign|Unknown/ }).waitFor({ timeout: 20000 });
  assert.equal(await round(), 4);
  await end(page, trouble, server);
});
