"""Milliseconds per round and peak memory over the population and the cohort: 10^2 to 10^6 agents, of
whom 10 to 1,000 are asked in a round.

    python bench/population.py            all of it, about three minutes
    python bench/population.py --quick    fewer rounds

Agents draw their rows with replacement (data.replace), so a million of them share the rows there are.
Two tasks: softmax regression on digits with 10 rows per agent, where a round is mostly bookkeeping, and
the network of job L (CIFAR-10, 3072-200-200-10, 50 rows per agent, one epoch in batches of 10), where
it is training. The cost of a round must not grow with the population, nor must the memory by more than
a few bytes per agent; with the cohort both may grow linearly. Exits with 1 if they do otherwise.
"""

import os
import sys

import common

POPULATIONS = (100, 1_000, 10_000, 100_000, 1_000_000)
DIGITS = {
    "data.kind": "digits", "data.per_agent": 10, "model.kind": "softmax-regression",
    "local.epochs": 1, "local.batch": 5, "step_size": 0.1,
}
JOB_L = {
    "data.kind": "cifar10", "data.per_agent": 50, "model.hidden": "[200, 200]",
    "model.activation": "relu", "local.epochs": 1, "local.batch": 10, "step_size": 0.1,
}
SHARED = {
    "rule.kind": "fedavg", "behaviour.kind": "never", "partition.kind": "iid", "eval_every": 1_000_000,
}


def measure(task, agents, asked, rounds, **more):
    keys = {**SHARED, **task, "agents": agents, "participation": asked / agents, "rounds": rounds,
            "data.replace": "true", "eval_agents": "none",
            **{key.replace("__", "."): value for key, value in more.items()}}
    sets = [f"{key}={value}" for key, value in keys.items()]
    answer = common.output("population", *sets, threads=os.cpu_count())
    seconds, low, high = common.quartiles(answer["seconds"])
    return {**answer, "ms": seconds * 1e3, "low": low * 1e3, "high": high * 1e3}


def table(name, task, cohorts, rounds_of):
    print(f"\n{name}")
    print(f"{'population':>10s} {'asked':>6s} {'ms/round':>9s} {'quartiles':>15s} {'peak MB':>8s} "
          f"{'start, s':>8s} {'listed':>7s}")
    rows = {}
    for asked in cohorts:
        for agents in POPULATIONS:
            if asked > agents:
                continue
            row = rows[agents, asked] = measure(task, agents, asked, rounds_of(asked))
            print(f"{agents:10,d} {asked:6,d} {row['ms']:9.3f} {row['low']:7.3f}–{row['high']:7.3f} "
                  f"{row['peak']:8.1f} {row['start_up']:8.2f} {row['listed']:7,d}", flush=True)
    return rows


def main():
    quick = "--quick" in sys.argv
    scale = 4 if quick else 1
    digits = table("digits, softmax regression, 10 rows per agent", DIGITS, (10, 100, 1_000),
                   lambda asked: 1 + max(20, 40_000 // asked // scale // 10))
    job_l = table("job L's network on CIFAR-10, 50 rows per agent", JOB_L, (100,) if quick else (100, 1_000),
                  lambda asked: 1 + max(3, 1_000 // asked // scale))
    dealt = measure(JOB_L, 1_000, 50, 21 if quick else 101, data__replace="false", eval_every=10)
    print(f"\njob L, rows dealt out, 50 of 1,000 asked, test rows every 10 rounds: "
          f"{dealt['ms']:.0f} ms/round (quartiles {dealt['low']:.0f}–{dealt['high']:.0f}), "
          f"peak {dealt['peak']:.0f} MB, accuracy {dealt['accuracy']:.4f}")

    targets = common.Targets()
    most = POPULATIONS[-1]
    for name, rows in (("digits", digits), ("job L", job_l)):
        small = rows[1_000, 100]
        targets.check(f"{name}: a round of 100 asked, 1,000 agents against {most:,}",
                      small["ms"] / rows[most, 100]["ms"], 0.67)
        per_agent = (rows[most, 100]["peak"] - small["peak"]) * 1e6 / most
        targets.check(f"{name}: 64 bytes against what one more agent takes, of 1,000 to {most:,}",
                      64 / max(per_agent, 1), 1)
    targets.check("digits: a round per agent asked, 100 against 1,000 asked, of a million",
                  digits[most, 100]["ms"] * 10 / digits[most, 1_000]["ms"], 0.67)
    targets.check("job L under 400 MB", 400 / dealt["peak"], 1)
    targets.finish()


if __name__ == "__main__":
    main()
