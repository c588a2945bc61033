// Draws the pictures of the page for the documentation: TOOLS=target/browser
// FEDSTAY=target/debug/fedstay node scripts/browser/screenshots.mjs docs/img

import { spawn } from "node:child_process";
import { join } from "node:path";
import { FEDSTAY, fedstay, folder, usual } from "./command.mjs";
import { browser, open, until, view } from "./common.mjs";

const out = process.argv[2];
const runs = folder();
for (const rule of ["fedavg", "retain"]) fedstay(...usual(join(runs, rule), `rule.kind=${rule}`));
fedstay(...usual(join(runs, "ada-gd+halve"), "rule.kind=ada-gd", "rule.on_settled=halve"));
fedstay(
  "run",
  "--set",
  "problem.kind=observation-3",
  "--set",
  "rule.kind=ada-gd",
  "--set",
  "record_gram=true",
  "--out",
  join(runs, "observation-3"),
);
const worth = new URL("../../experiments/worth-unequal.toml", import.meta.url).pathname;
fedstay("run", worth, "--out", join(runs, "worth"));
const live = spawn(
  FEDSTAY,
  usual(
    join(runs, "live"),
    "rule.kind=fedavg",
    "model.hidden=400",
    "step_size=0.05",
    "rounds=600",
    "eval_every=2",
  ),
  { stdio: "ignore" },
);
const server = await view(runs);
const chrome = await browser();

const { page } = await open(chrome.context, server.url, { size: { width: 1280, height: 1000 } });
const run = (name) =>
  page.locator("#runs a", { has: page.locator(".name", { hasText: new RegExp(`^${name}$`) }) });
await run("live").click();
await until(
  async () =>
    Number(await page.locator(".tile", { hasText: /^left/ }).locator("dd").textContent()) > 3,
  "departures",
  200000,
);
await page.screenshot({ path: join(out, "view.png") });
await page.emulateMedia({ colorScheme: "dark" });
for (const name of ["ada-gd+halve", "fedavg", "retain"])
  await page.getByRole("checkbox", { name: `Choose ${name} for`, exact: false }).check();
await page.locator("#compare").click();
await page.locator(".results tbody tr").nth(2).waitFor();
await page.waitForTimeout(800);
const plot = page.getByRole("slider", { name: "Mean over" });
await plot.focus();
for (let i = 0; i < 4; i += 1) await page.keyboard.press("PageDown");
await page.waitForTimeout(300);
await page.screenshot({ path: join(out, "view-compare.png") });
await page.emulateMedia({ colorScheme: "light" });
await run("observation-3").click();
const map = page.locator('[aria-label="Map of the losses"]');
await map.locator(".readout", { hasText: "round" }).waitFor();
await map.screenshot({ path: join(out, "view-map.png") });
await run("worth").click();
const members = page.getByRole("region", { name: "What every agent gave and got", exact: true });
await members.locator(".matrix tbody tr").nth(9).waitFor();
// Wide enough for every score. How the result is spread stands right above it, and both are one
// picture.
await page.setViewportSize({ width: 1720, height: 1000 });
await page.waitForTimeout(300);
const spread = page.getByRole("region", { name: "How the result is spread", exact: true });
const [top, bottom] = [await spread.boundingBox(), await members.boundingBox()];
const scrolled = await page.evaluate(() => [scrollX, scrollY]);
const clip = {
  x: top.x + scrolled[0],
  y: top.y + scrolled[1],
  width: top.width,
  height: bottom.y + bottom.height - top.y,
};
await page.screenshot({ path: join(out, "view-members.png"), clip, fullPage: true });
await run("fedavg").click();
await page.setViewportSize({ width: 390, height: 844 });
await page.waitForTimeout(800);
await page.screenshot({ path: join(out, "view-phone.png") });
live.kill();
await chrome.close();
server.stop();
process.exit(0);
