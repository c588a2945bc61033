"""The wheel's cases, for the interpreter that has it: `python wheel.py FOLDER PATTERN`.

Started by __main__.py. The last line it prints says what came of every case.
"""

import contextlib
import importlib.util
import json
import os
import shutil
import sys
import time
import traceback
from fnmatch import fnmatchcase
from pathlib import Path

import fedstay
import numpy as np
from cases import BEHAVIOURS, DIGITS, POLICIES, PROBLEM, RULES, SIMULATED
from scratch import OF_A_RUN, folder_of

TESTS = Path(__file__).parents[2] / "python" / "tests"
START = {"weights": [3.0, 0.0, -1.0], "step_size": 0.1, "epsilon": 1.0, "rounds": 30}
CASES = {}


def case(name):
    """Lists a function `do(kept, scratch)`: works in one folder, puts files to keep into the other."""

    def listed(do):
        CASES[f"python: {name}"] = do
        return do

    return listed


class Bowl:
    """Loss ½‖w − centre‖²; sums are taken in order, so that no library decides how they round."""

    def __init__(self, *centre, dies_at=None):
        self.centre, self.dies_at, self.asked = centre, dies_at, 0

    def loss_and_grad(self, weights):
        self.asked += 1
        if self.asked == self.dies_at:
            raise KeyboardInterrupt
        away = [float(w) - c for w, c in zip(weights, self.centre, strict=True)]
        return 0.5 * sum(x * x for x in away), np.array(away)


def bowls(**more):
    return {"a": Bowl(1.0, 0.1, 0.3, **more), "b": Bowl(0.1, 2.3, 0.7), "c": Bowl(0.7, 0.9, -1.1)}


def parts(settings, prefix):
    """Settings as in TOML, `rule.delta`, as the parameters of one table."""
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}


def keep(result, kept):
    """Keeps what a result says, and the files of its folder."""
    said = {"header": result.header, "summary": result.summary, "weights": hexed(result.weights)}
    said |= {"left": [list(d) for d in result.left], "columns": plain(result.columns)}
    (kept / "result.json").write_text(json.dumps(said))
    (kept / "lines.jsonl").write_text("".join(json.dumps(line) + "\n" for line in result.lines))
    if result.folder is not None:
        for name in OF_A_RUN:
            if (result.folder / name).exists():
                shutil.copy(result.folder / name, kept / name)


def plain(columns):
    """Columns as lists; NaN, which JSON does not have, as None."""
    return {n: [None if v != v else v for v in column] for n, column in columns.items()}


def hexed(weights):
    return np.asarray(weights, np.float64).tobytes().hex()


def simulated(rule, **options):
    def do(kept, scratch):
        keep(fedstay.simulate(bowls(), rule, out=scratch / "out", **{**START, **options}), kept)

    return do


def resumed(rule, **options):
    """Agents that die half way, then others that continue; the result is that of a run left alone."""

    def do(kept, scratch):
        options_ = {**START, **options}
        with contextlib.suppress(KeyboardInterrupt):
            fedstay.simulate(bowls(dies_at=3), rule, out=scratch / "out", **options_)
            raise AssertionError("nobody died")
        cut = fedstay.simulate(bowls(), rule, out=scratch / "out", resume=True, **options_)
        whole = fedstay.simulate(bowls(), rule, **options_)
        assert cut.lines == whole.lines and hexed(cut.weights) == hexed(whole.weights)
        keep(cut, kept)

    return do


def stepped(rule):
    """Four steps of a server, the third by a server made from the state of the first."""

    def do(kept, scratch):
        server, lines = fedstay.Server([0.5, -0.5, 0.25], rule, 0.1), []
        for turn in range(4):
            if turn == 2:
                server = fedstay.Server.from_state(server.state())
            reports = []
            for agent, bowl in enumerate(bowls().values()):
                loss, gradient = bowl.loss_and_grad(server.weights)
                reports.append(fedstay.Report(agent, gradient, loss=loss, epsilon=0.3))
            decision = server.step(reports)
            line = {"weights": hexed(server.weights), "delivered": hexed(server.delivered)}
            names = ("d", "nd", "case", "stop", "step_size", "rank", "landed")
            lines.append({**line, **{name: getattr(decision, name) for name in names}})
            if decision.stop:
                break
        (kept / "steps.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

    return do


def ran(base, settings):
    def do(kept, scratch):
        (scratch / "experiment.toml").write_text(base)
        path = scratch / "experiment.toml"
        keep(fedstay.run(path, set=settings, out=scratch / "out", threads=2), kept)

    return do


def listed_cases():
    """What needs nothing but the wheel and NumPy."""
    for name, more in RULES.items():
        if name.startswith("fairfed"):
            continue  # asks agents for the rates of groups
        rule = {"kind": name.split()[0], **parts(more, "rule.")}
        case(f"simulate: {name}")(simulated(rule))
        case(f"Server: {name}")(stepped(rule))
    for name, more in BEHAVIOURS.items():
        if name.startswith(SIMULATED):
            continue
        behaviour = {"kind": name.split()[0], **parts(more, "behaviour.")}
        if name == "mixed":
            share = [{"kind": "lying", "agents": [1]}, {"kind": "returning", "share": 1.0}]
            behaviour["of"] = share
        case(f"simulate, behaviour: {name}")(simulated("fedavg", behaviour=behaviour))
        case(f"simulate, resumed: {name}")(resumed("fedavg", behaviour=behaviour))
    for name, more in POLICIES.items():
        policy = {"kind": name.split()[0], **parts(more, "policy.")}
        case(f"simulate, policy: {name}")(simulated("fedavg", policy=policy))
    several = ["guard", fedstay.KeepBest()]
    case("simulate, policies: guard+keep-best")(simulated("fedavg", policy=several))
    case("simulate, resumed: guard+keep-best")(resumed("fedavg", policy=several))
    case("simulate, resumed: retain")(resumed("retain"))
    case("simulate, resumed: ada-gd")(resumed(fedstay.AdaGd(delta=0.1, on_settled="halve")))
    single = np.array(START["weights"], np.float32)
    case("simulate: single precision")(simulated("fedavg", weights=single))
    case("run: observation-3")(ran(PROBLEM, {"rule": fedstay.AdaGd(delta=0.1)}))
    case("run: digits")(ran(DIGITS, {"rounds": 12, "rule.kind": "retain"}))
    case("run: huber")(ran(PROBLEM, {"problem.kind": "huber", "rule.kind": "fedfv"}))


def study_in(scratch):
    study = PROBLEM + '[grid]\nrule.kind = ["fedavg", "retain"]\nepsilon = [0.1, 0.2]\n'
    (scratch / "study.toml").write_text(study)
    return scratch / "study.toml"


def columns_of(done):
    """What a sweep came to, without the names of its runs."""
    return {name: column for name, column in plain(done.columns).items() if name != "key"}


@case("sweep")
def sweep(kept, scratch):
    done = fedstay.sweep(study_in(scratch), store=scratch / "study.db", threads=2)
    (kept / "columns.json").write_text(json.dumps(columns_of(done)))


@case("tau")
def tau(kept, scratch):
    values = [
        fedstay.tau(loss=loss, epsilon=0.1, delta=0.05, norm=norm)
        for loss in (0.1, 0.2, 3.0)
        for norm in (0.3, 1.7)
    ]
    (kept / "tau.json").write_text(json.dumps(values))


def flower_cases():
    """Runs through Flower's own messages, on the grid inside this process that the tests have."""
    sys.path[:0] = [str(TESTS), str(TESTS / "loopback")]
    from fedstay.flower import FedStay
    from loopback.bowls import STEP_SIZE
    from nodes import Nodes, bowl_app, start

    def flown(rule, rounds=12, epsilon=0.9, **options):
        def do(kept, scratch):
            strategy = FedStay(
                rule, step_size=STEP_SIZE / 2, out=scratch / "out", wait=0.01, **options
            )
            grid = Nodes("abc", bowl_app(epsilon=epsilon))
            keep(start(strategy, grid, rounds=rounds, timeout=30), kept)

        return do

    case("flower: fedavg")(flown("fedavg"))
    case("flower: ada-gd")(flown(fedstay.AdaGd(delta=0.1)))
    case("flower: retain")(flown("retain"))
    case("flower: fedfv")(flown("fedfv"))
    case("flower: guard")(flown("maxfl", policy="guard"))
    case("flower: preview")(flown("fedavg", policy="preview"))
    case("flower: evaluated")(flown("fedavg", evaluate_every=3, evaluate_leavers=True))

    @case("flower: resumed")
    def resumed(kept, scratch):
        def dies(reply, name, round):
            if (name, round) == ("b", 5):
                raise KeyboardInterrupt
            return reply

        for app in (bowl_app(dies, epsilon=0.9), bowl_app(epsilon=0.9)):
            # Where the first is not interrupted, the second is refused.
            strategy = FedStay("fedavg", step_size=STEP_SIZE / 2, out=scratch / "out", wait=0.01)
            with contextlib.suppress(KeyboardInterrupt):
                start(strategy, Nodes("abc", app), rounds=12, timeout=30)
        keep(strategy.result, kept)

    @case("flower: too few")
    def too_few(kept, scratch):
        grid = Nodes("abc", bowl_app(epsilon=0.001))
        grid.dead |= {101, 102, 103}
        strategy = FedStay("fedavg", step_size=STEP_SIZE, on_few="stop", out=scratch / "out")
        keep(start(strategy, grid, timeout=0.05), kept)


def flare_cases():
    """Runs through FLARE's own messages, between sites inside this process, which the tests have."""
    sys.path.insert(0, str(TESTS.with_name("tests_flare")))
    from bowls import START as FIRST
    from bowls import STEP_SIZE
    from bowls import bowls as sites
    from fedstay.flare import FedStay
    from inside import Inside, run

    def flared(rule, **options):
        def do(kept, scratch):
            weights = {"a": [FIRST[:2]], "b": FIRST[2:]}
            more = {"step_size": STEP_SIZE, "rounds": 12, "weights": weights, "wait": 0.0}
            strategy = FedStay(rule, **more, **options)
            keep(run(strategy, Inside(sites()), out=scratch / "out"), kept)

        return do

    case("flare: fedavg")(flared("fedavg"))
    case("flare: ada-gd")(flared(fedstay.AdaGd(delta=0.1)))
    case("flare: retain")(flared("retain"))
    case("flare: preview")(flared("fedavg", policy="preview"))
    case("flare: evaluated")(flared("fedavg", evaluate_every=3, evaluate_leavers=True))


def ray_cases():
    @case("ray: sweep")
    def swept(kept, scratch):
        """On a cluster of two workers: what one machine computes, whichever worker computed it."""
        import fedstay.ray
        import ray

        study = study_in(scratch)
        here = {"_node_ip_address": "127.0.0.1", "include_dashboard": False}
        ray.init(num_cpus=2, log_to_driver=False, **here)
        try:
            done = fedstay.ray.sweep(study, store=scratch / "ray.db")
        finally:
            ray.shutdown()
        alone = fedstay.sweep(study, store=scratch / "alone.db", threads=2)
        assert columns_of(done) == columns_of(alone)
        (kept / "columns.json").write_text(json.dumps(columns_of(done)))


def main(folder, pattern):
    listed_cases()
    if importlib.util.find_spec("flwr"):
        os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
        flower_cases()
    if importlib.util.find_spec("nvflare"):
        flare_cases()
    if importlib.util.find_spec("ray"):
        ray_cases()
    results = {}
    for name, do in CASES.items():
        if not fnmatchcase(name, pattern):
            continue
        began, failed = time.monotonic(), None
        kept = folder / folder_of(name)
        scratch = folder / "scratch"
        kept.mkdir()
        scratch.mkdir()
        try:
            do(kept, scratch)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 (a panic in Rust is not an Exception)
            failed = " ".join(traceback.format_exc().split()[-40:])
        shutil.rmtree(scratch)
        results[name] = {"failed": failed, "seconds": round(time.monotonic() - began, 2)}
    print(json.dumps(results))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
