// Charts as a person uses them: zoomed, pointed at, pinned, saved; and what the address restores.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, readFileSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { before, test } from "node:test";
import { digits, fedstay, folder } from "./command.mjs";
import { drawing, end, open, until, useBrowser, view } from "./common.mjs";
import { falling, header, writeRun } from "./runs.mjs";

const chrome = useBrowser();
let runs;
let server;
before(async () => {
  runs = folder();
  fedstay(...digits(join(runs, "averaging"), "rule.kind=fedavg"), "--counterfactual");
  fedstay(...digits(join(runs, "preview"), "policy.kind=preview", "rule.kind=fedavg"));
  server = await view(runs);
});

const LOSSES = '[aria-label="Every agent’s loss against its target loss"]';
const summaryOf = (run) => JSON.parse(readFileSync(join(runs, run, "summary.json"), "utf8"));
const linesOf = (run) =>
  readFileSync(join(runs, run, "rounds.jsonl"), "utf8")
    .trim()
    .split("\n")
    .slice(1)
    .map((text) => JSON.parse(text));
const percent = (value) => `${(100 * value).toFixed(1)}%`;
const shownRounds = (page) =>
  page.getByRole("group", { name: "Rounds shown" }).locator("span").first().textContent();

async function opened(run) {
  const made = await open(chrome.context, server.url);
  await made.page.getByRole("link", { name: run }).click();
  await made.page.locator(".progress", { hasText: `${run} ·` }).waitFor();
  return made;
}

test("zoom and pan by pointer, wheel, keyboard and buttons", async () => {
  const { page, trouble } = await opened("averaging");
  const { rounds } = summaryOf("averaging");
  const plot = page.locator(`${LOSSES} .plot`);
  await until(async () => (await shownRounds(page)) === `rounds 1 to ${rounds}`, "all rounds");
  const whole = await drawing(page, `${LOSSES} canvas`);
  const box = await plot.boundingBox();
  const at = (share) => box.x + 58 + share * (box.width - 74);
  const middle = box.y + box.height / 2;
  const range = async () =>
    (await shownRounds(page))
      .match(/(\d+) to (\d+)/)
      .slice(1)
      .map(Number);
  // Dragging over a part shows that part, in every chart.
  await page.mouse.move(at(0.25), middle);
  await page.mouse.down();
  await page.mouse.move(at(0.4), middle);
  await page.mouse.move(at(0.5), middle);
  await page.mouse.up();
  const [from, to] = await range();
  assert.ok(
    Math.abs(from - 0.25 * rounds) < 3 && Math.abs(to - 0.5 * rounds) < 3,
    `${from} to ${to}`,
  );
  await until(async () => (await drawing(page, `${LOSSES} canvas`)) !== whole, "another drawing");
  // Shift and drag moves it.
  await page.keyboard.down("Shift");
  await page.mouse.move(at(0.8), middle);
  await page.mouse.down();
  await page.mouse.move(at(0.6), middle);
  await page.mouse.move(at(0.4), middle);
  await page.mouse.up();
  await page.keyboard.up("Shift");
  const moved = await range();
  assert.ok(moved[0] > from && Math.abs(moved[1] - moved[0] - (to - from)) <= 1, moved.join());
  // Ctrl and the wheel zoom; two clicks show everything again.
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await until(async () => (await range())[1] - (await range())[0] < to - from, "nearer");
  await page.mouse.dblclick(at(0.5), middle);
  await until(
    async () => (await shownRounds(page)) === `rounds 1 to ${rounds}`,
    "all rounds again",
  );
  // The same by keyboard: + − 0, and Shift with an arrow.
  await plot.focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  const near = await range();
  assert.ok(near[0] === 1 && near[1] <= rounds / 4 + 2, near.join());
  await page.keyboard.press("Shift+ArrowRight");
  assert.ok((await range())[0] > 1);
  // The cursor takes the view along.
  await page.keyboard.press("End");
  assert.ok((await range())[1] >= rounds - 1, (await range()).join());
  await page.keyboard.press("-");
  await page.keyboard.press("0");
  assert.equal(await shownRounds(page), `rounds 1 to ${rounds}`);
  // And by buttons, which a finger can reach.
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.getByRole("button", { name: "Earlier rounds" }).click();
  assert.notEqual(await shownRounds(page), `rounds 1 to ${rounds}`);
  await page.getByRole("button", { name: "Show all rounds" }).click();
  assert.equal(await shownRounds(page), `rounds 1 to ${rounds}`);
  await end(page, trouble);
});

test("all values at the cursor, sorted, and pinned ones in the address with everything else", async () => {
  const { page, trouble } = await opened("averaging");
  const plot = page.locator(`${LOSSES} .plot`);
  const box = await plot.boundingBox();
  await page.mouse.move(box.x + box.width / 3, box.y + 80);
  const values = plot.locator(".values li");
  await until(async () => (await values.count()) === 10, "ten agents");
  const numbers = (await values.locator(".value").allTextContents()).map(parseFloat);
  assert.deepEqual(
    numbers,
    [...numbers].sort((a, b) => b - a),
  );
  await page.mouse.down();
  await page.mouse.up();
  await page.mouse.move(5, 5);
  const pinned = page.locator(`${LOSSES} .pinned`);
  await until(async () => (await pinned.locator("li").count()) === 10, "pinned");
  const round = Number((await pinned.locator("h3").textContent()).match(/Round (\d+)/)[1]);
  // They are the losses of that round in the file or, where only a bound was told, the last exact
  // ones.
  const known = new Map();
  for (const line of linesOf("averaging").filter((one) => one.round <= round)) {
    line.agents.forEach((agent, i) => {
      if (!(line.at_least || []).includes(agent)) known.set(agent, [line.loss[i], line.round]);
    });
    (line.assessment ? line.assessment.loss : []).forEach((loss, agent) =>
      known.set(agent, [loss, line.round]),
    );
  }
  const wanted = [...known.values()]
    .sort(([a], [b]) => b - a)
    .map(([loss, of]) => loss.toFixed(4) + (of < round ? ` (round ${of})` : ""));
  assert.deepEqual(await pinned.locator(".value").allTextContents(), wanted);

  await page.getByRole("button", { name: "margin to ε" }).click();
  await page.getByRole("button", { name: "log" }).click();
  await page
    .getByRole("group", { name: "What is measured" })
    .getByRole("button", { name: "loss" })
    .click();
  await page.getByRole("button", { name: "agent 3" }).click();
  await plot.focus();
  await page.keyboard.press("+");
  const rounds = await shownRounds(page);
  const again = await open(chrome.context, page.url());
  assert.equal(await shownRounds(again.page), rounds);
  for (const name of ["margin to ε", "log", "agent 3"])
    assert.equal(
      await again.page.getByRole("button", { name }).getAttribute("aria-pressed"),
      "true",
      name,
    );
  assert.equal(
    await again.page
      .getByRole("group", { name: "What is measured" })
      .getByRole("button", { name: "loss" })
      .getAttribute("aria-pressed"),
    "true",
  );
  assert.equal(
    await again.page.locator(`${LOSSES} .pinned h3`).textContent(),
    `Round ${round}, pinned`,
  );
  await again.page.getByRole("slider", { name: "chart of what is measured" }).focus();
  await again.page.keyboard.press("End");
  assert.match(
    await again.page
      .getByRole("slider", { name: "chart of what is measured" })
      .getAttribute("aria-valuetext"),
    /worst agent’s loss/,
  );
  // Let go.
  await again.page.locator(`${LOSSES} .pinned button`).click();
  await again.page.locator(`${LOSSES} .pinned`).waitFor({ state: "hidden" });
  assert.doesNotMatch(again.page.url(), /[#&]at=/);
  assert.deepEqual([...trouble, ...again.trouble], []);
  await page.close();
  await again.page.close();
});

test("a chart is saved as SVG, PNG and CSV, and the files open", async () => {
  const { page, trouble } = await opened("averaging");
  const card = page.locator('[aria-label="How good the model is for everybody"]');
  const save = async (kind) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      card.getByRole("button", { name: kind, exact: true }).click(),
    ]);
    assert.equal(
      download.suggestedFilename(),
      `averaging-how-good-the-model-is-for-everybody.${kind.toLowerCase()}`,
    );
    return readFileSync(await download.path());
  };
  const [svg, png, csv] = [await save("SVG"), await save("PNG"), (await save("CSV")).toString()];
  // The browser itself decodes the picture: twice the chart's size, and not of one colour.
  const picture = await page.evaluate(async (bytes) => {
    const bitmap = await createImageBitmap(
      new Blob([Uint8Array.from(atob(bytes), (sign) => sign.charCodeAt(0))], { type: "image/png" }),
    );
    const context = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    context.drawImage(bitmap, 0, 0);
    const { data } = context.getImageData(0, 0, bitmap.width, bitmap.height);
    return { width: bitmap.width, colours: new Set(new Uint32Array(data.buffer)).size };
  }, png.toString("base64"));
  assert.equal(
    picture.width,
    2 * (await card.locator(".plot").evaluate((plot) => plot.clientWidth)),
  );
  assert.ok(picture.colours > 10, `${picture.colours} colours`);
  // The browser itself reads the drawing: it has a size, a title, lines and the legend's texts.
  const read = await page.evaluate((text) => {
    const made = new DOMParser().parseFromString(text, "image/svg+xml");
    return {
      bad: made.querySelectorAll("parsererror").length,
      title: made.querySelector("title")?.textContent,
      paths: made.querySelectorAll("path").length,
      texts: [...made.querySelectorAll("text")].map((one) => one.textContent),
      width: Number(made.documentElement.getAttribute("width")),
    };
  }, svg.toString());
  assert.deepEqual([read.bad, read.title], [0, "averaging: How good the model is for everybody"]);
  assert.ok(
    read.paths > 5 &&
      read.width > 300 &&
      ["mean accuracy", "worst agent", "the delivered model"].every((text) =>
        read.texts.includes(text),
      ),
    JSON.stringify(read),
  );
  // The numbers are those of the rounds, then of the summary.
  const rows = csv
    .trim()
    .split("\r\n")
    .map((row) => row.split(","));
  assert.deepEqual(rows[0], ["round", "mean accuracy", "worst agent", "population"]);
  const { accuracy, population } = summaryOf("averaging");
  const last = rows.at(-1);
  assert.equal(last[0], "delivered");
  [accuracy.mean, accuracy.min, population.accuracy].forEach((value, i) =>
    assert.ok(Math.abs(Number(last[i + 1]) - value) < 1e-6, last.join()),
  );
  const measured = linesOf("averaging").filter((line) => line.assessment);
  assert.deepEqual(
    rows.slice(1, -1).map((row) => Number(row[0])),
    measured.map((line) => line.round),
  );
  // Every chart saves; a browser asks after ten files from one page, so not every kind of each.
  for (const chart of await page.locator("section.card:has(.plot)").all()) {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      chart.getByRole("button", { name: "SVG", exact: true }).click(),
    ]);
    const text = readFileSync(await download.path(), "utf8");
    const bad = await page.evaluate(
      (one) =>
        new DOMParser().parseFromString(one, "image/svg+xml").querySelectorAll("parsererror")
          .length,
      text,
    );
    assert.ok(bad === 0 && text.includes("<path"), download.suggestedFilename());
  }
  await end(page, trouble);
});

test("the head says the settings, the time and the price; the table what each agent is", async () => {
  const { page, trouble } = await opened("averaging");
  const settings = await page.locator(".settings").textContent();
  await page.getByRole("heading", { level: 1, name: "fedavg on digits, seed 0" }).waitFor();
  for (const text of [
    "rulefedavg",
    "target loss ε0.1",
    "step size η0.2",
    "heterogeneity q1",
    "datadigits",
    "seed0",
  ])
    assert.ok(settings.includes(text), `${text} in ${settings}`);
  assert.match(await page.locator(".progress").textContent(), /began .* · took \d+ (s|min)/);
  const { accuracy, counterfactual } = summaryOf("averaging");
  const harm = await page.locator(".harm").textContent();
  assert.ok(
    harm.includes(
      `the average agent ${percent(counterfactual.accuracy.mean)} → ${percent(accuracy.mean)}`,
    ),
    harm,
  );
  const row = page.locator("tbody tr", { hasText: "agent 3" });
  assert.match(await row.textContent(), /only 3.*threshold/);
  // k of n content, over the rounds and at the end.
  const kept = page.getByRole("slider", { name: "chart of agents" });
  await kept.focus();
  await page.keyboard.press("End");
  const content = summaryOf("averaging").content;
  assert.ok(
    (await kept.getAttribute("aria-valuetext")).endsWith(
      `content with the delivered model: ${content} of 10`,
    ),
    await kept.getAttribute("aria-valuetext"),
  );
  await page.keyboard.press("Home");
  assert.match(
    await kept.getAttribute("aria-valuetext"),
    /^round 1 · still in 10 of 10 · content 0 of 10/,
  );
  // In between as many as the measured losses say.
  const looked = linesOf("averaging")
    .filter((line) => line.assessment)
    .at(-2);
  const count = looked.assessment.loss.filter((loss) => loss <= 0.1).length;
  for (let round = 1; round < looked.round; round += 1) await page.keyboard.press("ArrowRight");
  assert.ok(
    (await kept.getAttribute("aria-valuetext")).endsWith(`content ${count} of 10`),
    `${count}: ${await kept.getAttribute("aria-valuetext")}`,
  );
  // What an agent was shown, where it is not the model.
  await page.getByRole("link", { name: "preview" }).click();
  await page.locator(".progress", { hasText: "preview ·" }).waitFor();
  await page.locator("th", { hasText: /^shown$/ }).waitFor();
  // A run is called by its rule and what was added to it, as in the terminal and in its report.
  const called = "fedavg+preview on digits, seed 0";
  await page.getByRole("heading", { level: 1, name: called }).waitFor();
  assert.ok((await page.locator(".settings").textContent()).includes("rulefedavg+preview"));
  assert.match(
    await page.locator("#runs li", { hasText: "fedavg+preview · " }).textContent(),
    /^preview/,
  );
  assert.ok(
    readFileSync(join(runs, "preview", "report.html"), "utf8").includes(`<h1>${called}</h1>`),
  );
  await end(page, trouble);
});

test("a run whose agents add noise says what its reports gave away", async () => {
  const own = folder();
  fedstay(...digits(join(own, "noisy"), "rule.kind=fedavg", "rounds=4", "privacy.noise=0.5"));
  const { privacy } = JSON.parse(readFileSync(join(own, "noisy", "summary.json"), "utf8"));
  const other = await view(own);
  const { page, trouble } = await open(chrome.context, other.url);
  const told = page.getByText(/^Privacy: what 4 reports say is/);
  await told.waitFor();
  assert.ok(
    (await told.textContent()).includes(
      `(${privacy.epsilon.toFixed(3)}, ${privacy.delta})-differentially private`,
    ),
    await told.textContent(),
  );
  await end(page, trouble);
  other.stop();
});

test("on a log scale the margin keeps its marks, and no label is cut off", async () => {
  const { page, trouble } = await opened("averaging");
  await page.getByRole("button", { name: "margin to ε" }).click();
  await page.getByRole("button", { name: "log" }).click();
  const save = async (name) => {
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page
        .locator(`[aria-label="${name}"]`)
        .getByRole("button", { name: "SVG", exact: true })
        .click(),
    ]);
    return readFileSync(await download.path(), "utf8");
  };
  // A cross is two strokes, drawn twice (a rim, then ink): as many as there are departures.
  const { left } = summaryOf("averaging");
  const drawn = await save("Every agent’s loss against its target loss");
  const inside = await page.evaluate((text) => {
    const made = new DOMParser().parseFromString(text, "image/svg+xml");
    const [wide, high] = ["width", "height"].map((name) =>
      Number(made.documentElement.getAttribute(name)),
    );
    const crosses = [...made.querySelectorAll("path")]
      .map((one) =>
        one
          .getAttribute("d")
          .match(/-?[\d.]+/g)
          .map(Number),
      )
      .filter(
        (at) =>
          at.length === 8 &&
          Math.abs(at[0] - at[4]) > 4 &&
          Math.abs(Math.abs(at[0] - at[2]) - Math.abs(at[1] - at[3])) < 0.1,
      );
    return {
      count: crosses.length,
      within: crosses.every((at) =>
        at.every((value, i) => value >= 0 && value <= (i % 2 ? high : wide)),
      ),
    };
  }, drawn);
  assert.deepEqual(inside, { count: 2 * left.length, within: true });
  // The labels of every axis, with the page's own letters, are inside of their drawing.
  for (const name of ["Every agent’s loss against its target loss", "The server’s step"]) {
    const texts = await page.evaluate(
      (text) => {
        const place = document.body.appendChild(
          document.importNode(
            new DOMParser().parseFromString(text, "image/svg+xml").documentElement,
            true,
          ),
        );
        const from = place.getBoundingClientRect().left;
        const cut = [...place.querySelectorAll("text")]
          .filter((one) => one.getBoundingClientRect().left < from - 0.5)
          .map((one) => one.textContent);
        place.remove();
        return cut;
      },
      await save(name),
    );
    assert.deepEqual(texts, [], name);
  }
  await end(page, trouble);
});

test("every final value on the page is the summary's", async () => {
  const { page, trouble } = await opened("averaging");
  for (const run of ["averaging", "preview"]) {
    await page.getByRole("link", { name: run }).click();
    await page.locator(".progress", { hasText: `${run} ·` }).waitFor();
    const { accuracy, loss, population, agents, left, content, rounds } = summaryOf(run);
    const tiles = Object.fromEntries(
      await page
        .locator(".tile")
        .evaluateAll((all) =>
          all.map((one) => [
            one.querySelector("dt").textContent,
            one.querySelector("dd").textContent,
          ]),
        ),
    );
    assert.deepEqual(
      tiles,
      {
        left: `${new Set(left.map((one) => one.agent)).size} of 10`,
        content: `${content} of 10`,
        "mean accuracy": percent(accuracy.mean),
        "worst accuracy": percent(accuracy.min),
        rounds: String(rounds),
      },
      run,
    );
    for (const agent of agents) {
      const cells = await page
        .locator("tbody tr", { hasText: `agent ${agent.id}` })
        .locator("td")
        .allTextContents();
      const wanted = [
        agent.loss <= agent.epsilon ? "yes" : "no",
        agent.loss.toFixed(4),
        agent.epsilon.toFixed(4),
        (agent.loss - agent.epsilon).toFixed(4).replace("-", "−"),
        percent(agent.accuracy),
      ];
      assert.deepEqual(cells.slice(0, 5), wanted, `${run}, agent ${agent.id}`);
    }
    const said = async (name) => {
      const chart = page.getByRole("slider", { name });
      await chart.focus();
      await page.keyboard.press("End");
      return chart.getAttribute("aria-valuetext");
    };
    assert.ok(
      (await said("chart of what is measured")).includes(
        `delivered: mean accuracy ${percent(accuracy.mean)}, worst agent ` +
          `${percent(accuracy.min)}, population ${percent(population.accuracy)}`,
      ),
    );
    assert.ok(
      (await said("chart of losses")).includes(
        `delivered from ${loss.min.toFixed(4)} to ${loss.max.toFixed(4)}`,
      ),
    );
    assert.ok(
      (await said("chart of agents")).includes(
        `content with the delivered model: ${content} of 10`,
      ),
    );
  }
  // The table of all runs and the comparison say the same.
  await page.getByRole("link", { name: "All runs as a table" }).click();
  const check = async () => {
    for (const run of ["averaging", "preview"]) {
      const { accuracy, loss, population, content, left, rounds } = summaryOf(run);
      const row = await page.locator(".results tbody tr", { hasText: run }).textContent();
      const wanted = [
        `${new Set(left.map((one) => one.agent)).size} of 10`,
        `${content} of 10`,
        String(rounds),
        loss.mean.toFixed(4),
        loss.max.toFixed(4),
        percent(accuracy.mean),
        percent(accuracy.min),
        percent(population.accuracy),
      ];
      for (const value of wanted) assert.ok(row.includes(value), `${run}: ${value} in ${row}`);
    }
  };
  await page.getByRole("heading", { name: "All runs" }).waitFor();
  await check();
  await page.locator("#choose").click();
  await page.locator("#compare").click();
  await until(async () => (await page.locator(".results tbody tr").count()) === 2, "both runs");
  await check();
  await end(page, trouble);
});

test("a run that stopped writing says how to continue it", async () => {
  const cut = folder();
  const path = join(cut, "cut off");
  fedstay(...digits(path, "rule.kind=fedavg", "rounds=20"));
  spawnSync("rm", [join(path, "summary.json")]);
  const old = Date.now() / 1000 - 120;
  for (const file of ["rounds.jsonl", "config.toml"]) utimesSync(join(path, file), old, old);
  const own = await view(cut);
  const { page, trouble } = await open(chrome.context, own.url);
  await page.locator(".badge", { hasText: /^Stopped$/ }).waitFor();
  assert.match(await page.locator(".next").textContent(), /fedstay run --resume '.*\/cut off'$/);
  await end(page, trouble);
  own.stop();
});

test("a live run grows without moving anything, zoomed or not", async () => {
  const live = folder();
  writeRun(
    join(live, "grows"),
    header(2, 200),
    Array.from({ length: 20 }, (_, i) => falling(i + 1)),
  );
  const own = await view(live);
  const { page, trouble } = await open(chrome.context, own.url);
  await page.evaluate(() => {
    window.shift_ = 0;
    new PerformanceObserver((list) =>
      list.getEntries().forEach((entry) => {
        window.shift_ += entry.value;
      }),
    ).observe({ type: "layout-shift", buffered: false });
  });
  const height = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let round = 21; round <= 60; round += 1) {
    appendFileSync(join(live, "grows", "rounds.jsonl"), `${JSON.stringify(falling(round))}\n`);
    if (round % 10 === 0) await page.locator(".progress", { hasText: `round ${round}` }).waitFor();
  }
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), height);
  assert.ok((await page.evaluate(() => window.shift_)) < 0.01, "no layout shift");
  // What is zoomed into stays where it is.
  await page.locator(`${LOSSES} .plot`).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("+");
  await page.keyboard.press("+");
  const rounds = await shownRounds(page);
  for (let round = 61; round <= 70; round += 1)
    appendFileSync(join(live, "grows", "rounds.jsonl"), `${JSON.stringify(falling(round))}\n`);
  await page.locator(".progress", { hasText: "round 70" }).waitFor();
  assert.equal(await shownRounds(page), rounds);
  // The same in a comparison: only what was added is drawn, and nothing moves.
  writeRun(
    join(live, "other"),
    header(2, 200, { rule: "fedavg" }),
    Array.from({ length: 30 }, (_, i) => falling(i + 1)),
  );
  await page.locator("#runs li", { hasText: "other" }).waitFor();
  await page.locator("#choose").click();
  await page.locator("#compare").click();
  await until(async () => (await page.locator(".results tbody tr").count()) === 2, "both runs");
  await page.waitForTimeout(300);
  await page.evaluate(() => {
    window.shift_ = 0;
  });
  const compared = await page.evaluate(() => document.documentElement.scrollHeight);
  for (let round = 71; round <= 90; round += 1)
    appendFileSync(join(live, "grows", "rounds.jsonl"), `${JSON.stringify(falling(round))}\n`);
  await page
    .locator(".results tbody tr", { hasText: "grows" })
    .locator("td", { hasText: /^90$/ })
    .waitFor();
  assert.equal(await page.evaluate(() => document.documentElement.scrollHeight), compared);
  assert.ok((await page.evaluate(() => window.shift_)) < 0.01, "no layout shift in a comparison");
  await end(page, trouble);
  own.stop();
});
