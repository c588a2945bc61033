"""Runs the Flower example twice on the simulation engine; see scripts/test-examples."""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "python" / "tests"))

import federation  # noqa: E402
import fedstay  # noqa: E402

APP = ROOT / "examples" / "flower-cifar10"


def main():
    folder = Path(tempfile.mkdtemp(prefix="fedstay-examples-"))
    made = federation.Federation(folder / "federation", secure=False, simulation=True, app=APP)
    results = {}
    try:
        for rule in ("fedavg", "ada-gd"):
            out = folder / rule
            options = "num-supernodes=4 client-resources-num-cpus=1"
            run = made.start_run("--federation-config", options, rule=rule, out=str(out))
            status = made.finish(run, out, 900)
            assert status == "finished:completed", made.log("superlink")
            results[rule] = fedstay.read(out)
            accuracy = [agent["accuracy"] for agent in results[rule].summary["agents"]]
            print(f"{results[rule]}; worst agent {100 * min(accuracy):.1f}% accuracy")
            results[rule].plot(folder / f"{rule}.png")
    finally:
        made.close()
    print("pictures:", folder)
    lost, kept = results["fedavg"], results["ada-gd"]
    worst = {k: min(a["accuracy"] for a in r.summary["agents"]) for k, r in results.items()}
    assert len(lost.left) >= 3 and lost.verdict == "harmful", lost
    assert kept.left == [], kept
    assert worst["ada-gd"] > worst["fedavg"] + 0.2, worst


if __name__ == "__main__":
    main()
