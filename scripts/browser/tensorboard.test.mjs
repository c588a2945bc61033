// TensorBoard's own reader on our event files, against the run's folder.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { digits, fedstay, folder } from "./command.mjs";

const READER = `
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0})
events.Reload()
print(json.dumps({tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()["scalars"]}))
`;

test("TensorBoard reads every scalar of every round", () => {
  const out = folder();
  const board = join(out, "board");
  fedstay(...digits(join(out, "run"), "rule.kind=fedavg"), "--tensorboard", board);
  const read = spawnSync(join(process.env.TOOLS, "venv/bin/python"), ["-c", READER, board], {
    encoding: "utf8",
  });
  assert.equal(read.status, 0, read.stderr);
  const scalars = JSON.parse(read.stdout);
  const [, ...rounds] = readFileSync(join(out, "run/rounds.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const steps = scalars["step/length"];
  assert.deepEqual(
    steps.map(([step]) => step),
    rounds.map((line) => line.round),
  );
  rounds.forEach((line, i) => assert.equal(steps[i][1], Math.fround(line.step_norm)));
  const looked = rounds.filter((line) => line.assessment);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
  assert.deepEqual(
    scalars["accuracy/mean"].map(([step]) => step),
    looked.map((line) => line.round),
  );
  looked.forEach((line, i) =>
    assert.ok(Math.abs(scalars["accuracy/mean"][i][1] - mean(line.assessment.accuracy)) < 1e-6),
  );
  assert.equal(scalars["agents/left"].at(-1)[1], 10);
  assert.ok(scalars["agent_loss/3"].length > 0);
});
