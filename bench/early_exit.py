"""The exact early exit over the first half of real training, on one core, against PyTorch.

Figure 2's setting at ε = 0.2 with 5,000 images per agent, once for agents that decide on the model
they received and once for those that decide on their own. The driver `early_exit` trains with full
losses and with the early exit side by side and asserts after every round that all weights are the
same bits and the same agents have left; in between, PyTorch runs its round. Exits with 1 if a
target is missed.

    python bench/early_exit.py [ROUNDS]
"""

import sys
import tempfile

import common

import numpy as np

ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 250
CHUNK = max(1, ROUNDS // 10)


def main():
    common.pin()
    targets = common.Targets()
    with tempfile.TemporaryDirectory() as folder:
        child = common.Child("job_j", folder)
        child.read()
        child.end()
        from peers import Job, Researcher, torch  # PyTorch, only now that threads and core are set

        torch.set_num_threads(1)
        researcher = Researcher(Job(folder))
        researcher.round()
    for decides_on in ("received", "own"):
        training = common.Child("early_exit", decides_on, ROUNDS, CHUNK, "cpu")
        print(f"agents decide on the {decides_on} model; CPU ms per round, medians of {CHUNK} rounds")
        print(f"{'rounds':>9s} {'loss':>6s} {'left':>4s} {'PyTorch':>8s} {'full':>6s} {'early':>6s} "
              f"{'bare':>6s} {'work':>6s} {'evaluation':>15s}")
        all_times = {key: [] for key in ("PyTorch", "full", "early", "bare", "work")}
        for first in range(1, ROUNDS + 1, CHUNK):
            answer = training.read()
            answer["PyTorch"] = [sum(researcher.round()[2]) / 1e3 for _ in range(3)]
            median = {key: float(np.median(answer[key])) * 1e3 for key in all_times}
            for key, times in all_times.items():
                times.extend(answer[key])
            left = sum(agent["left"] is not None for agent in answer["left"])
            evaluation = [median[key] - median["work"] for key in ("full", "early")]
            print(f"{first:4d}–{answer['round']:<4d} {answer['loss']:6.3f} {left:4d} "
                  f"{median['PyTorch']:8.1f} {median['full']:6.1f} {median['early']:6.1f} "
                  f"{median['bare']:6.1f} {median['work']:6.1f} "
                  f"{evaluation[0]:6.1f} → {evaluation[1]:5.1f}")
            training.send()
        training.end()
        mean = {key: float(np.mean(times)) * 1e3 for key, times in all_times.items()}
        print("mean      " + ", ".join(f"{key} {value:.1f}" for key, value in mean.items()))
        print(f"deciding alone, without the forecast of who is about to leave ('bare'): round "
              f"{mean['PyTorch'] / mean['bare']:.2f} times PyTorch's, evaluation "
              f"{(mean['full'] - mean['work']) / (mean['bare'] - mean['work']):.2f} times less")
        if decides_on == "received":
            targets.check("early exit, whole round, times the researcher's PyTorch",
                          mean["PyTorch"] / mean["early"], 6)
            targets.check("early exit, times less evaluation",
                          (mean["full"] - mean["work"]) / (mean["early"] - mean["work"]), 4)
    targets.finish()


if __name__ == "__main__":
    main()
