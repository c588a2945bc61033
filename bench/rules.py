"""Milliseconds per round of averaging, ADA-GD, `retain`, `stay` and preview for 10 to 3,000 agents asked: 16 images
of CIFAR-10 each, softmax regression (30,730 weights), nobody leaves.

    python bench/rules.py [MOST_AGENTS]

A rule that holds agents should cost like the cohort, not like its square: from 100 agents to 1,000, time
per round should grow with an exponent of at most 1.3. Exits with 1 where it does not. With 3,000 it is told too.
"""

import math
import os
import sys

import common

AGENTS = (10, 30, 100, 300, 1_000, 3_000)
# The target loss of each rule is one at which agents are held in these rounds: `retain` goes for it at once,
# averaging by small steps gets below 2 and not below 1.
RULES = {
    "averaging": ("rule.kind=fedavg", "epsilon=2.0"),
    "ADA-GD": ("rule.kind=ada-gd", "epsilon=2.0"),
    "retain": ("rule.kind=retain", "epsilon=1.0"),
    "stay": ("rule.kind=stay", "epsilon=1.0"),
    "averaging + preview": ("rule.kind=fedavg", "policy.kind=preview", "epsilon=2.0"),
}


def main():
    most = int(sys.argv[1]) if len(sys.argv) > 1 else max(AGENTS)
    print(f"{'rule':>20s} {'agents':>7s} {'ms/round':>10s} {'CPU ms':>10s} {'held':>6s} {'peak MB':>8s}")
    targets = common.Targets()
    for rule, keys in RULES.items():
        medians = {}
        for agents in (n for n in AGENTS if n <= most):
            rounds = 1 + (20 if agents <= 100 else 10 if agents <= 300 else 5)
            answer = common.output("rules", agents, rounds, *keys, threads=os.cpu_count())
            seconds, low, high = common.quartiles(answer["seconds"])
            cpu = common.quartiles(answer["cpu"])[0]
            held = sum(answer["held"]) / max(1, len(answer["held"]))
            medians[agents] = seconds
            print(f"{rule:>20s} {agents:7,d} {seconds * 1e3:10.1f} {cpu * 1e3:10.1f} {held:6.0f} "
                  f"{answer['peak']:8.0f}   quartiles {low * 1e3:.1f}–{high * 1e3:.1f} ms, "
                  f"{len(answer['seconds'])} rounds, {answer['stop']}", flush=True)
        for last in (n for n in medians if n in (1_000, max(medians)) and n > 100):
            exponent = math.log(medians[last] / medians[100]) / math.log(last / 100)
            words = f"{rule}: the exponent from 100 to {last:,} agents"
            if last <= 1_000:
                targets.check(f"{words} is {exponent:.2f}, 1.3 over it", 1.3 / max(exponent, 0.1), 1.0)
            else:
                print(f"       {words} is {exponent:.2f}")
    targets.finish()


if __name__ == "__main__":
    main()
