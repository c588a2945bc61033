// How fast the page of one build is against that of another, measured in turns on the same runs:
//
//     node scripts/browser/timings.mjs --old OLD/fedstay --new target/release/fedstay [--passes 5]
//
// Needs what scripts/test-browser installs. The machine must be quiet: every figure is the median
// over the passes, with the smallest and the largest behind it.

import { existsSync } from "node:fs";
import { join } from "node:path";

const root = new URL("../..", import.meta.url).pathname;
process.env.TOOLS ||= join(root, "target/browser");

function refuse(why) {
  process.stderr.write(`error: ${why}\n`);
  process.exit(2);
}

function asked(words) {
  const options = { passes: "5" };
  for (let i = 0; i < words.length; i += 2) options[words[i].replace(/^--/, "")] = words[i + 1];
  for (const name of ["old", "new"]) {
    if (!options[name] || !existsSync(options[name]))
      refuse(`--${name}: there is no program ${options[name] ?? ""}; give the path of a fedstay`);
  }
  if (!existsSync(process.env.TOOLS))
    refuse(`${process.env.TOOLS} is missing: run scripts/test-browser once`);
  if (!(Number(options.passes) >= 1))
    refuse(`--passes ${options.passes}: give a number of at least 1`);
  return options;
}

const options = asked(process.argv.slice(2));
const { browser, folder, pointOver, redraw, viewBy, watchFrames, writeHundred, writeLarge } =
  await import("./common.mjs");

const [large, hundred] = [folder(), folder()];
writeLarge(join(large, "large"));
writeHundred(hundred);

const share = (sorted, part) => sorted[Math.floor(part * (sorted.length - 1))];

// Milliseconds from the start of the navigation until there are so many of something, by the page's
// own clock.
async function until(page, selector, count) {
  const there = ([what, many]) =>
    document.querySelectorAll(what).length === many && performance.now();
  return (
    await page.waitForFunction(there, [selector, count], { timeout: 60000, polling: "raf" })
  ).jsonValue();
}

async function drawn(page) {
  const marked = () => performance.getEntriesByName("fedstay-drawn")[0]?.startTime;
  return (await page.waitForFunction(marked, null, { timeout: 60000, polling: "raf" })).jsonValue();
}

// One cold browser and one server: what a person waits for.
async function measure(program, runs, look) {
  const server = await viewBy(program, runs);
  const chrome = await browser();
  const page = await chrome.context.newPage();
  try {
    return await look(page, server.url);
  } finally {
    await chrome.close();
    server.stop();
  }
}

async function pointing(page, name) {
  const box = await page.getByRole("slider", { name }).first().boundingBox();
  const inside = await page.context().newCDPSession(page);
  await inside.send("Performance.enable");
  // The processor time of the page's own thread, which a busy machine changes less than the clock.
  const worked = async () =>
    1000 *
    (await inside.send("Performance.getMetrics")).metrics.find(
      ({ name: what }) => what === "ThreadTime",
    ).value;
  await watchFrames(page);
  const before = await worked();
  const frames = await pointOver(page, box);
  return {
    median: share(frames, 0.5),
    most: share(frames, 0.95),
    work: ((await worked()) - before) / 120,
  };
}

async function painted(page) {
  return page.evaluate(
    () => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? NaN,
  );
}

async function largeRun(page, url) {
  await page.goto(url);
  const everything = await drawn(page);
  const paint = await painted(page);
  const bytes = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .reduce((sum, entry) => sum + (entry.transferSize || entry.encodedBodySize), 0),
  );
  const frame = await pointing(page, "chart of losses");
  return {
    "200 × 5,000: first paint, ms": paint,
    "200 × 5,000: everything drawn, ms": everything,
    "200 × 5,000: sent, kB": bytes / 1000,
    "200 × 5,000: frame while pointing, median, ms": frame.median,
    "200 × 5,000: frame while pointing, 95%, ms": frame.most,
    "200 × 5,000: the page's thread per movement, ms": frame.work,
    "200 × 5,000: drawn again, ms": await redraw(page),
  };
}

async function hundredRuns(page, url) {
  await page.goto(url);
  const listed = await until(page, "#runs li", 100);
  const paint = await painted(page);
  const ids = await page.evaluate(async () =>
    (await (await fetch("/api/runs")).json()).runs.map(({ id }) => id),
  );
  // In a page of its own: a link to a comparison, as one sends it.
  const compared = await page.context().newPage();
  await compared.goto(`${url.split("#")[0]}#compare=${ids.join(",")}`);
  const all = await until(compared, '[aria-label="Results"] tbody tr', 100);
  const first = await painted(compared);
  await compared.waitForTimeout(1500);
  const frame = await pointing(compared, "Mean over all agents");
  return {
    "100 runs: first paint, ms": paint,
    "100 runs: all listed, ms": listed,
    "100 runs compared: first paint, ms": first,
    "100 runs compared: all rows, ms": all,
    "100 runs compared: frame while pointing, median, ms": frame.median,
    "100 runs compared: frame while pointing, 95%, ms": frame.most,
    "100 runs compared: the page's thread per movement, ms": frame.work,
    "100 runs compared: drawn again, ms": await redraw(compared),
  };
}

const found = { old: {}, new: {} };
for (let pass = 0; pass < Number(options.passes); pass += 1) {
  // In turns, and each first in every other pass, so that a slow minute of the machine hits both.
  for (const build of pass % 2 ? ["new", "old"] : ["old", "new"]) {
    for (const [runs, look] of [
      [large, largeRun],
      [hundred, hundredRuns],
    ]) {
      for (const [name, value] of Object.entries(await measure(options[build], runs, look)))
        (found[build][name] ||= []).push(value);
    }
    process.stderr.write(`pass ${pass + 1} of ${options.passes}: ${build}\n`);
  }
}

const digits = (value) => (value < 100 ? value.toFixed(1) : value.toFixed(0));
const told = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return `${digits(share(sorted, 0.5))} (${digits(sorted[0])} to ${digits(sorted.at(-1))})`;
};
console.log("| | old | new |\n|---|---|---|");
for (const name of Object.keys(found.old))
  console.log(`| ${name} | ${told(found.old[name])} | ${told(found.new[name])} |`);
process.exit(0);
