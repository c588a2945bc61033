// Folders of runs as some other engine would write them.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// A line of two agents, with no more in it than every line has.
export function roundLine(round, loss, more = {}) {
  return {
    round,
    agents: [0, 1],
    loss,
    d: [],
    case: null,
    left: [],
    step_size: 0.1,
    step_norm: 0.1,
    stop: null,
    ...more,
  };
}

// The losses fall as one and two divided by the round.
export function falling(round, more = {}) {
  return roundLine(round, [1 / round, 2 / round], more);
}

export function header(agents, rounds, more = {}) {
  return {
    schema: "fedstay.rounds/1",
    version: "0.1.0",
    rule: "ada-gd",
    on: "flower",
    seed: 0,
    rounds,
    agents: Array.from({ length: agents }, (_, id) => ({ id, epsilon: 0.2 })),
    ...more,
  };
}

// A folder of a run: `lines` are objects or raw text.
export function writeRun(path, header, lines, config) {
  mkdirSync(path, { recursive: true });
  const text = [header, ...lines]
    .map((line) => (typeof line === "string" ? line : JSON.stringify(line)))
    .join("\n");
  writeFileSync(join(path, "rounds.jsonl"), `${text}\n`);
  if (config) writeFileSync(join(path, "config.toml"), config);
}

// A finished run of another engine: a loss that falls, and the summary it ends in.
export function writeFinished(
  path,
  { rule, seed = 0, q = 1, rounds = 20, verdict = "retained", mean = 0.9, config },
) {
  const lines = Array.from({ length: rounds }, (_, i) => {
    const accuracy = [(mean * (i + 1)) / rounds, ((mean - 0.1) * (i + 1)) / rounds];
    const loss = accuracy.map((value) => 1 - value);
    return roundLine(i + 1, loss, { assessment: { loss, accuracy, population: null } });
  });
  const agents = [0, 1].map((id) => ({
    id,
    epsilon: 0.2,
    loss: 0.1 + id / 10,
    accuracy: mean - id / 10,
    left: null,
  }));
  writeRun(
    path,
    header(2, rounds, { rule, seed, on: "digits" }),
    lines,
    config ||
      `seed = ${seed}\nepsilon = 0.2\n[rule]\nkind = "${rule}"\n[partition]\nkind = "by-class"\nq = ${q}\n`,
  );
  const summary = {
    verdict,
    stop: "settled",
    rounds,
    content: 2,
    agents,
    left: [],
    loss: { min: 0.1, mean: 0.15, max: 0.2 },
    accuracy: { min: mean - 0.1, mean: mean - 0.05, max: mean },
    population: { accuracy: mean - 0.02 },
    warnings: [],
  };
  writeFileSync(join(path, "summary.json"), JSON.stringify(summary));
  return summary;
}

// 200 agents × 5,000 rounds of losses that never lie on a line, sixty of them leaving: the largest
// run measured.
export function writeLarge(path) {
  const ids = Array.from({ length: 200 }, (_, id) => id);
  const lines = [];
  for (let round = 1; round <= 5000; round += 1) {
    const gone = Math.min(60, Math.max(0, Math.floor((round - 2500) / 40)));
    const still = ids.slice(gone);
    const loss = still.map(
      (id) =>
        0.15 +
        (2 + (id % 13) / 10) * Math.exp(-round / (900 + 3 * id)) +
        0.05 * Math.sin(round * (id + 1)),
    );
    const left = round > 2500 && round % 40 === 0 && gone < 60 ? [gone] : [];
    lines.push({
      round,
      agents: still,
      loss,
      d: still.filter((id, i) => loss[i] < 0.3 && id % 3 === 0),
      case: 1,
      left: left.filter((id) => still.includes(id)),
      step_size: 0.1,
      step_norm: 0.01 + 1 / round,
      stop: null,
    });
  }
  writeRun(path, header(200, 5000), lines);
}

// A hundred finished runs under four rules, of 60 to 159 rounds.
export function writeHundred(folder) {
  for (let seed = 0; seed < 100; seed += 1) {
    const rule = ["fedavg", "retain", "ada-gd", "mixed-retention"][seed % 4];
    writeFinished(join(folder, `run-${seed}`), {
      rule,
      seed,
      q: seed % 2 ? 0.9 : 0.4,
      mean: 0.5 + seed / 250,
      rounds: 60 + seed,
    });
  }
}
