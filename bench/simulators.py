"""Federated learning simulators on the tasks that they measure themselves with.

    python bench/simulators.py                                         all of it, three times
    python bench/simulators.py --rounds 10 --repeats 1 --no-watch      a look, without targets: two minutes
    python bench/simulators.py --tasks K --contestants fedstay pfl-2

K is FLUTE's: softmax regression on MNIST, 1,000 clients with 60 images, 10 per round, one epoch in batches of 10
with a step of 0.03, 100 rounds, the test images at the end. L is pfl-research's: CIFAR-10, 1,000 clients with
50 images, 50 per round, one epoch in batches of 10 with a step of 0.1, a 3072-200-200-10 ReLU net, 100 rounds, the test
images after every 10. (M, BlazeFL's convolutional net, is bench/cnn.py.)

Every contestant is a command, a process or several; they take turns, once for each seed, on the same images
and with the same work, and each deals, starts and draws for itself. Peers say how long their rounds took, evaluations
included, and everything else is their start-up; they take a step before their clock starts. fedstay's rounds are
those of bench/drivers/src/bin/population.rs, which runs the same experiment and must reach the same accuracy:
the mean of all but the first, times their number, and the last evaluation. Test accuracies must agree in the mean. Peak
memory is what the system says of a single process; for several it is the largest sum of their proportional shares
(PSS) in a run of its own, of at most 20 rounds, because watching takes time. Exits with 1 if a target is missed.
"""

import argparse
import ctypes
import dataclasses
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import common

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "contestants"))
from tasks import TASKS  # noqa: E402

#: How far apart the mean test accuracies may be, and how far after fewer rounds, where they still rise fast.
APART, APART_EARLY = {"K": 0.01, "L": 0.02}, 0.06
MODELS = {
    "K": ("model.kind=softmax-regression",),
    "L": ("model.kind=mlp", "model.hidden=[200, 200]", "model.activation=relu"),
}
#: An option of prctl(2).
SUBREAPER = 36


def adopt():
    """Makes this process the parent of what contestants leave behind, so that it can be found."""
    ctypes.CDLL(None).prctl(SUBREAPER, 1)


def children():
    """All processes that descend from this one."""
    parents = {}
    for entry in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parents[int(entry)] = int(file.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue  # It has ended.
    found = [os.getpid()]
    for parent in found:
        found += [process for process, of in parents.items() if of == parent]
    return found[1:]


def shares():
    """The megabytes that the descendants have, pages in common counted once."""
    total = 0
    for process in children():
        try:
            with open(f"/proc/{process}/smaps_rollup") as file:
                total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue
    return total * 1024 / 1e6


def tidy():
    """Waits for what a contestant left behind (Ray's actors take a second), and ends what does not end."""
    for wait in range(100):
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        if wait == 50:
            for process in children():
                os.kill(process, signal.SIGKILL)
        time.sleep(0.1)


def run(command, threads, watched=False):
    """Runs a command; its seconds, its peak in megabytes, and the last line that it printed, or all of it
    where that is one object."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "GLOO_SOCKET_IFNAME": "lo"}
    environment.pop("RAYON_NUM_THREADS", None)
    peak = 0
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        if watched:
            while process.poll() is None:
                peak = max(peak, shares())
                time.sleep(0.2)
            code = process.returncode
        else:
            _, status, usage = os.wait4(process.pid, 0)
            code = process.returncode = os.waitstatus_to_exitcode(status)
            peak = usage.ru_maxrss * 1024 / 1e6
        seconds = time.perf_counter() - began
        tidy()
        for file in (out, err):
            file.seek(0)
        if code:
            sys.exit(f"{' '.join(command)}\n{err.read()[-3000:]}")
        told = out.read().strip()
    return seconds, peak, json.loads(told if told.startswith("{\n") else told.splitlines()[-1])


def fedstay(task, rounds, seed, watch):
    """The command line, which writes nothing with `--json`; and its rounds, by the driver that times them."""
    keys = (
        f"data.kind={task.data}", f"agents={task.clients}", f"participation={task.asked / task.clients}",
        f"rounds={rounds}", f"step_size={task.step}", f"local.epochs={task.epochs}",
        f"local.batch={task.batch}", f"eval_every={task.eval_every}", "eval_agents=none",
        "partition.kind=iid", "rule.kind=fedavg", "behaviour.kind=never", "epsilon=0.001", f"seed={seed}",
        *MODELS[task.name],
    )  # fmt: skip
    sets = [part for key in keys for part in ("--set", key)]
    command = [os.path.join(common.TARGET, "release", "fedstay"), "run", "--json", *sets]
    seconds, peak, told = run(command, os.cpu_count())
    timed = run([common.driver("population"), *keys], os.cpu_count())[2]
    accuracy = told["population"]["accuracy"]
    if timed["accuracy"] != accuracy:
        sys.exit(f"the driver and the command disagree: {timed['accuracy']} and {accuracy}")
    # Of the first round the driver does not know when it began. What follows the last one evaluates.
    rest = sum(timed["seconds"]) * rounds / (rounds - 1) + timed["summary"]
    return {"whole": seconds, "rounds": rest, "peak": peak, "accuracy": accuracy}


def python(script, *arguments, threads=1, processes=1, many=False):
    """A contestant of bench/contestants."""

    def measure(task, rounds, seed, watch):
        launch = ["-m", "torch.distributed.run", f"--nproc_per_node={processes}", "--master_addr=127.0.0.1"]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            launch.append(f"--master_port={free.getsockname()[1]}")
        path = os.path.join(HERE, "contestants", f"{script}.py")
        command = [sys.executable, "-W", "ignore", *(launch if processes > 1 else []), path, task.name]

        def of(rounds):
            return [*command, str(rounds), str(seed), *map(str, arguments)]

        seconds, peak, told = run(of(rounds), threads)
        if processes > 1 or many:
            # Once is enough: the sizes do not depend on the seed.
            peak = run(of(min(rounds, 20)), threads, watched=True)[1] if watch else 0
        return {"whole": seconds, "peak": peak, **told}

    return measure


CONTESTANTS = {
    "fedstay": ("fedstay", fedstay),
    "torch-1": ("PyTorch loop, one thread", python("torch_loop", 1)),
    "torch-2": ("PyTorch loop, two threads", python("torch_loop", 2, threads=2)),
    "pfl-1": ("pfl-research, one process", python("pfl_research")),
    "pfl-2": ("pfl-research, two processes", python("pfl_research", processes=2)),
    "flower": ("Flower's simulation, two actors", python("flower", many=True)),
}
#: Flower takes part in K, as in FLUTE's own comparison.
DEFAULT = {"K": tuple(CONTESTANTS), "L": tuple(name for name in CONTESTANTS if name != "flower")}


def median(runs, what):
    return statistics.median(run[what] for run in runs)


def contest(task, names, rounds, repeats, watch):
    """All contestants in turns; what they took, as a table for COMPARE.md."""
    found = {name: [] for name in names}
    for seed in range(repeats):
        for name in names:
            told = CONTESTANTS[name][1](task, rounds, seed, watch and seed == 0)
            found[name].append(told)
            print(f"  {task.name}, seed {seed}, {name}: {told['whole']:.2f} s, rounds {told['rounds']:.3f} s, "
                  f"accuracy {told['accuracy']:.4f}", flush=True)  # fmt: skip
    ours = median(found[names[0]], "rounds")
    print(f"\n{task.name}, {rounds} rounds, medians of {repeats} (lowest to highest)\n")
    print("| | whole command, s | start-up, s | rounds, s | client trainings per second | "
          "peak MB | test accuracy | rounds, times the first |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|")
    for name, runs in found.items():
        taken = sorted(run["rounds"] for run in runs)
        seconds = median(runs, "rounds")
        starts = statistics.median(run["whole"] - run["rounds"] for run in runs)
        accuracy = statistics.mean(run["accuracy"] for run in runs)
        print(f"| {CONTESTANTS[name][0]} | {median(runs, 'whole'):.2f} | {starts:.2f} | "
              f"{seconds:.3f} ({taken[0]:.3f}–{taken[-1]:.3f}) | {rounds * task.asked / seconds:,.0f} | "
              f"{max(run['peak'] for run in runs) or float('nan'):,.0f} | {accuracy:.4f} | {seconds / ours:.1f} |")  # fmt: skip
    print(flush=True)
    return found


def check(targets, task, found, whole):
    """Holds one task to its targets, and a run of fewer rounds to agreement alone."""
    accuracies = [statistics.mean(run["accuracy"] for run in runs) for runs in found.values()]
    most, apart = APART[task.name] if whole else APART_EARLY, max(accuracies) - min(accuracies)
    targets.check(f"{task.name}: {most:g} against how far accuracies are apart", most / max(apart, 1e-9), 1)
    if not whole or "fedstay" not in found:
        return
    ours = median(found["fedstay"], "rounds")

    def times(what, least, *names):
        """Against the fastest of them."""
        there = [median(found[name], "rounds") for name in names if name in found]
        if there:
            targets.check(f"{task.name}: times {what}", min(there) / ours, least)

    if task.name == "K":
        times("the PyTorch loop on one or two threads", 20, "torch-1", "torch-2")
        times("pfl-research", 20, "pfl-1", "pfl-2")
        times("Flower's simulation", 200, "flower")
    else:
        times("the PyTorch loop on one or two threads", 4, "torch-1", "torch-2")
        times("pfl-research with two processes", 3, "pfl-2")
        peak = max(run["peak"] for run in found["fedstay"])
        targets.check("L: 400 MB against the peak", 400 / peak, 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tasks", nargs="+", choices=DEFAULT, default=list(DEFAULT))
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, help="by default, all of the task")
    parser.add_argument("--rounds", type=int, help="two or more; by default 100, which the targets are for")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-watch", action="store_true", help="no memory of contestants of several processes")
    given = parser.parse_args()
    if given.rounds is not None and given.rounds < 2:
        parser.error("--rounds must be 2 or more: rounds are timed after the first")
    adopt()
    targets = common.Targets()
    for name in given.tasks:
        task = TASKS[name]
        rounds = given.rounds or task.rounds
        names = given.contestants or DEFAULT[name]
        cut = dataclasses.replace(task, rounds=rounds)
        found = contest(cut, names, rounds, given.repeats, not given.no_watch)
        check(targets, task, found, rounds == task.rounds)
    if given.rounds:
        sys.exit(1 if targets.missed else 0)
    targets.finish()


if __name__ == "__main__":
    main()
