// The command, and folders that are gone at the end.

import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

// Every folder, profile and server is removed or stopped at the end.
process.setMaxListeners(100);
export const FEDSTAY = process.env.FEDSTAY;
const experiment = (name) => new URL(`../../experiments/${name}.toml`, import.meta.url).pathname;

export function folder() {
  const path = mkdtempSync(join(tmpdir(), "fedstay-browser-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

export function fedstay(...words) {
  const done = spawnSync(FEDSTAY, words, { encoding: "utf8" });
  if (done.status !== 0) throw new Error(`fedstay ${words.join(" ")}: ${done.stderr}`);
  return done.stdout;
}

// The extreme case, in which rules differ most.
export function digits(out, ...sets) {
  return on("extreme", out, ...sets);
}

export function usual(out, ...sets) {
  return on("default", out, ...sets);
}

// What agents gave and got, by these methods.
export function worthRun(out, methods, ...sets) {
  return on("worth-unequal", out, `worth.methods=${JSON.stringify(methods)}`, ...sets);
}

function on(name, out, ...sets) {
  return ["run", experiment(name), ...settings(out, ...sets).slice(1)];
}

// The words for a run that is described by settings alone.
export function settings(out, ...sets) {
  return ["run", "--out", out, ...sets.flatMap((set) => ["--set", set])];
}

// A run on two weights, which has a map.
export function mapped(out) {
  const sets = ["problem.kind=observation-3", "rule.kind=fedavg", "record_gram=true"];
  return fedstay(...settings(out, ...sets));
}
