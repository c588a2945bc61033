"""Job J against PyTorch, on one core, in the same run, on the same data, batches and weights.

One round: 10 agents with 5,000 CIFAR-10 images each, a 3072-128-10 softplus network, the full local
loss of every agent, 5 local steps of batch 64, the mean. Contestants take turns. Losses must agree
to 1e-5 and the weights after the round to 1e-6. Exits with 1 if a target is missed.

    python bench/job_j.py [ROUNDS]
"""

import os
import sys
import tempfile

import common

import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 15
LOSSES, WEIGHTS = 1e-5, 1e-6  # how far apart answers may be
OURS = {"avx512": "fedstay, f32 (AVX-512)", "vnni": "fedstay, integers (VNNI)"}


def main():
    common.pin()
    with tempfile.TemporaryDirectory() as folder:
        child = common.Child("job_j", folder)
        kernels = [k for k in child.read()["kernels"] if k in OURS]
        if not kernels:
            sys.exit("this machine has no AVX-512: only the portable kernels run, and no target applies")
        from peers import Job, peers  # PyTorch, only now that threads and core are set

        contestants = peers(Job(folder))
        reference_losses, reference_weights, _ = contestants[0].round()
        reference_weights = reference_weights.numpy()
        times = {c.name: [] for c in contestants} | {OURS[k]: [] for k in kernels}
        apart = {name: [0.0, 0.0] for name in times}

        def note(name, losses, weights, parts):
            times[name].append([*parts, sum(parts)])
            off = np.abs(np.subtract(losses, reference_losses)).max()
            moved = np.abs(np.subtract(weights, reference_weights)).max()
            apart[name] = [max(apart[name][0], off), max(apart[name][1], moved)]

        for _ in range(ROUNDS):
            for contestant in contestants:
                losses, weights, parts = contestant.round()
                note(contestant.name, losses, weights.numpy(), parts)
            for kernel in kernels:
                answer = child.ask(kernel)
                weights = np.fromfile(os.path.join(folder, f"{kernel}.f32"), "<f4")
                note(OURS[kernel], answer["losses"], weights, [answer[p] for p in "abc"])
        child.end()

    print(f"Job J, CPU ms per round on one core: median of {ROUNDS} rounds, quartiles in brackets")
    print(f"{'':28s} {'losses':>8s} {'steps':>7s} {'mean':>6s} {'round':>23s} "
          f"{'loss off':>9s} {'weight off':>10s}")
    totals = {}
    for name, rounds in times.items():
        a, b, c, _ = np.median(rounds, axis=0)
        middle, low, high = common.quartiles([r[3] for r in rounds])
        totals[name] = middle
        print(f"{name:28s} {a:8.1f} {b:7.1f} {c:6.1f} {middle:8.1f} ({low:5.1f}–{high:5.1f}) "
              f"{apart[name][0]:9.0e} {apart[name][1]:10.0e}")
    for name, (off, moved) in apart.items():
        assert off <= LOSSES, f"{name}: losses differ by {off}"
        assert moved <= WEIGHTS, f"{name}: weights differ by {moved}"

    researcher = totals[contestants[0].name]
    fastest = min(totals[c.name] for c in contestants)
    targets = common.Targets()
    for kernel, (over_researcher, over_fastest) in {"avx512": (1.5, 1.3), "vnni": (2.1, 1.8)}.items():
        if kernel in kernels:
            ours = totals[OURS[kernel]]
            targets.check(f"{kernel}, times the researcher's PyTorch", researcher / ours, over_researcher)
            targets.check(f"{kernel}, times the fastest PyTorch", fastest / ours, over_fastest)
    targets.finish()


if __name__ == "__main__":
    main()
