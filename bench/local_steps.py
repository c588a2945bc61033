"""An agent's local steps, directly and by the Gram matrix of its images, CPU ms on one core.

Figure 3's agents (2,000 CIFAR-10 images, 64 hidden units, batches of 64) for several numbers of steps, and
the agents of pfl-research's task (50 images, two hidden layers of 200, batches of 10). The two ways take
turns on the same batches; where the simulator would not use the matrix, both columns are the direct way.
`apart` is the largest difference of the two directions as a share of the largest element. Exits with 1
if 100 steps do not gain 1.3 times.

    python bench/local_steps.py
"""

import common

AGENTS = (
    ("Figure 3", 2000, "[64]", ((64, 5), (64, 20), (64, 50), (64, 100))),
    ("pfl-research", 50, "[200, 200]", ((10, 5), (10, 25))),
)


def main():
    common.pin()
    targets = common.Targets()
    for name, samples, hidden, pairs in AGENTS:
        child = common.Child("local_steps", samples, hidden, *(word for pair in pairs for word in pair))
        print(f"{name}: {samples} images, hidden {hidden}; its matrix takes {child.read()['products']:.1f} ms, once")
        print(f"{'batch':>7s} {'steps':>6s} {'direct':>20s} {'by the matrix':>20s} {'times':>6s} {'apart':>8s}")
        for batch, steps in pairs:
            answer = child.read()
            columns = [common.quartiles(answer[way]) for way in ("direct", "products")]
            gain = columns[0][0] / columns[1][0]
            cells = [f"{middle:8.2f} ({low:.2f}–{high:.2f})" for middle, low, high in columns]
            print(f"{batch:7d} {steps:6d} {cells[0]:>20s} {cells[1]:>20s} {gain:6.2f} {answer['apart']:8.1e}"
                  + ("" if answer["used"] else "  not used"))
            if steps == 100:
                targets.check("100 local steps by the Gram matrix, times the direct way", gain, 1.3)
        child.end()
    targets.finish()


if __name__ == "__main__":
    main()
