"""The runs: every rule, behaviour, policy, problem, partition, model and key, small and quick."""

from collections.abc import Callable
from dataclasses import dataclass

from scratch import Scratch

#: Ten agents on which rules differ: under some all leave within thirty rounds, under others nobody.
DIGITS = """
seed = 3
rounds = 30
step_size = 0.4
epsilon = 0.6
agents = 10
eval_every = 5
rule.kind = "fedavg"
data.kind = "digits"
data.per_agent = 60
partition.kind = "by-class"
partition.q = 0.8
model.kind = "mlp"
model.hidden = [12]
local.batch = "full"
"""

#: Two agents on a problem with exact oracles. Files say everything, so that defaults may change.
PROBLEM = """
seed = 3
rounds = 60
rule.kind = "fedavg"
problem.kind = "observation-3"
"""


@dataclass(frozen=True)
class Case:
    """A thing to do, under a name; with `varied`, under several numbers of threads."""

    name: str
    do: Callable[[Scratch], None]
    #: The settings a case is about, for the check that nothing was forgotten.
    settings: dict
    varied: bool = False


def run(name: str, base: str, settings: dict, *options: str, varied: bool = False) -> Case:
    """One run of the program, kept."""

    def do(scratch: Scratch) -> None:
        experiment = scratch.write("experiment.toml", fitting(base, settings))
        scratch.run(experiment, settings, *options)

    return Case(name, do, settings, varied)


def fitting(base: str, settings: dict) -> str:
    """The base without the parameters of what the settings replace by another kind."""
    replaced = tuple(key.removesuffix("kind") for key in settings if key.endswith(".kind"))
    return "\n".join(line for line in base.splitlines() if not line.startswith(replaced))


#: Every rule, and what can be changed about it.
RULES = {
    "fedavg": {},
    "fedavg samples": {"rule.weigh": "samples"},
    "minibatch-sgd": {},
    "ada-gd": {"rule.delta": 0.1},
    "ada-gd halve": {"rule.delta": 0.1, "rule.on_settled": "halve"},
    "ada-gd no-projection": {"rule.delta": 0.1, "rule.projection": False},
    "ada-gd margin": {"rule.delta": 0.05, "rule.margin": 0.05, "rule.horizon": 0.1},
    "retain": {},
    "retain descent": {"rule.base": "descent", "rule.delta": 0.05},
    "retain no-floors": {"rule.floors": False},
    "retain region": {"rule.trust": "region", "rule.margin": 0.02},
    "retain proof": {"rule.trust": "proof", "rule.smoothness": 4.0, "rule.horizon": 0.1},
    "retain no-landing": {"rule.landing": False},
    "retain alone": {"rule.bench": False, "rule.on_unrealizable": "least"},
    "retain convex": {"rule.convex": True},
    "level": {"rule.delta": 0.05},
    "stay": {"rule.share": 0.1},
    "stay alone": {"policy.kind": "none", "rule.price": 4.0, "rule.watch": False, "rule.delta": 0.05},
    "mw-fed": {},
    "mw-fed c": {"rule.c": 4.0, "rule.variant": "weight"},
    "maxfl": {},
    "maxfl sigmoid": {"rule.reading": "sigmoid", "rule.e": 0.1},
    "maxfl rho": {"rule.reading": "gradient", "rule.rho": 0.3},
    "q-fedavg": {},
    "q-fedavg q": {"rule.q": 2.0},
    "afl": {},
    "afl gamma": {"rule.gamma": 0.3},
    "fedmgda-plus": {},
    "fedmgda-plus e": {"rule.e": 0.05},
    "fedfv": {},
    "fedfv tau": {"rule.alpha": 0.3, "rule.tau": 3},
    "pcgrad": {},
    "pcgrad seed": {"rule.seed": 5},
    "mifa": {},
    "uniform": {},
    "uniform polyak": {"rule.nu": "polyak", "rule.level": 0.1},
    "fedce": {},
    "fedce gradient": {"rule.mode": "gradient"},
    "scaffold": {"local.steps": 3},
    "scaffold drop": {"rule.leavers": "drop", "local.steps": 3},
    "fairfed": {"data.group": "brightness"},
    "fairfed positive": {"rule.beta": 0.5, "data.group": 20, "data.positive": 3},
}

#: Every server optimiser.
OPTIMISERS = {
    "sgd": {"server.lr": 0.5},
    "momentum": {"server.beta1": 0.5},
    "adagrad": {"server.lr": 0.05},
    "adam": {"server.beta2": 0.9},
    "yogi": {"server.tau": 0.01},
}

#: Every behaviour, quick enough to be seen within thirty rounds.
BEHAVIOURS = {
    "threshold": {},
    "never": {},
    "utility": {"behaviour.value": 1.0, "behaviour.cost": 0.05, "behaviour.patience": 4},
    "foresight": {"behaviour.steps": 3, "behaviour.rate": 0.2},
    "two-sided": {"behaviour.alone": 8, "behaviour.patience": 3},
    "returning": {"behaviour.rise": 0.05},
    "shirking": {"behaviour.refresh": 4},
    "lying": {"behaviour.offset": 0.5, "behaviour.within": 0.4},
    "opt-out": {"behaviour.gain": 0.01, "behaviour.grace": 4},
    "contagious": {"behaviour.patience": 2},
    "competitor": {"behaviour.rivalry": 0.8, "behaviour.patience": 5},
    "free-riding": {"behaviour.form": "scaled-delta", "behaviour.scale": 0.9},
    "free-riding random": {"behaviour.form": "random", "behaviour.range": 0.05},
    "free-riding noise": {"behaviour.form": "adaptive-noise", "behaviour.fade": 0.5},
    "amplifying": {"behaviour.factor": 2.0},
    "withholding": {"behaviour.rows": 0.5},
    "mixed": {
        "behaviour.of": '[{ kind = "foresight", agents = [0, 3], steps = 5 }, '
        '{ kind = "returning", share = 0.4 }, { kind = "threshold", share = 0.6 }]'
    },
}

#: Behaviours that only the simulator's agents can have.
SIMULATED = ("opt-out", "contagious", "competitor", "free-riding", "amplifying", "withholding")

#: Every schedule but the usual one and the one that reads a file.
SCHEDULES = {
    "arrive": {"schedule.every": 4},
    "depart": {"schedule.every": 4},
    "round-robin": {"schedule.every": 2, "schedule.turns": 3},
    "random": {"schedule.p": 0.6},
    "markov": {"schedule.stay": 0.7, "schedule.away": 0.6},
}

#: Rows that arrive over the rounds.
STREAMS = {
    "grow": {"stream.window": 0.4, "stream.over": 12},
    "slide class": {"stream.order": "class", "stream.moves": "step", "stream.over": 9},
    "slide periodic": {"stream.moves": "periodic", "stream.window": 0.5, "stream.over": 10},
}

POLICIES = {
    "early-stop": {"policy.margin": 0.05},
    "keep-best": {},
    "guard": {"policy.delta": 0.02},
    "preview": {},
    "preview paced": {"policy.pace": 0.3, "policy.over": 20, "policy.cap": 2, "policy.margin": 0.05},
    "preview content": {"policy.until": "content", "policy.smoothness": 4.0, "policy.pace": 0},
    "preview rewind": {"policy.by": "rewind"},
    "preview stale": {"policy.by": "stale"},
}

#: Several policies, in the order in which they act.
TOGETHER = (
    ("guard", "keep-best"),
    ("guard", "early-stop"),
    ("early-stop", "keep-best"),
    ("preview", "early-stop", "keep-best"),
)

PROBLEMS = {
    "observation-1": {},
    "observation-2": {},
    "observation-3": {"problem.alpha": 0.5, "problem.start": [1.5, 1.2]},
    "observation-4": {},
    "red-blue": {},
    "huber": {"problem.agents": 5, "problem.dim": 8, "problem.samples": 6},
    "smoothed-hinge": {"problem.agents": 4, "problem.dim": 6, "problem.samples": 5},
}

#: What a federation on data may look like.
TRAINING = {
    "by-class as-printed": {"partition.mix": "as-printed", "partition.q": 0.3},
    "by-class map": {"agents": 3, "partition.map": [[0, 1], [2, 3, 4], [5, 6, 7, 8, 9]]},
    "dirichlet": {"partition.kind": "dirichlet", "partition.alpha": 0.3, "data.per_agent": 30},
    "shards": {"partition.kind": "shards", "partition.k": 3},
    "iid": {"partition.kind": "iid"},
    "unequal": {"partition.sizes": "power", "partition.skew": 1.2, "data.per_agent": 30},
    "classes": {"data.classes": [1, 4, 7], "agents": 3, "data.test_share": 0.3},
    "population": {"population": 10, "agents": 6},
    "softmax": {"model.kind": "softmax-regression"},
    "logistic": {"model.kind": "logistic-regression", "data.classes": [3, 8], "agents": 2},
    "deep relu": {"model.hidden": [12, 8], "model.activation": "relu", "model.init": "he"},
    "tanh": {"model.activation": "tanh", "model.init": "small"},
    "zero-output": {"model.init": "zero-output"},
    "local steps": {"local.steps": 4, "step_size": 0.1},
    "local batches": {"local.steps": 3, "local.batch": 16, "step_size": 0.1},
    "local eta/K": {"local.steps": 5, "local.step": "eta/K"},
    "prox": {"local.steps": 4, "local.mu": 0.5, "local.batch": 20},
    "epochs": {"local.epochs": 2, "local.batch": 30, "step_size": 0.05},
    "replace": {"data.replace": True, "data.per_agent": 40, "agents": 60, "participation": 0.2},
    "replace dirichlet": {
        "data.replace": True,
        "data.per_agent": 40,
        "partition.kind": "dirichlet",
        "partition.alpha": 0.2,
        "partition.sizes": "dirichlet",
    },
    "sample": {"eval_agents": 3},
    "balanced accuracy": {"measure": '["balanced", "accuracy"]'},
    "nobody measured": {"eval_agents": '"none"', "behaviour.kind": "never"},
    "exact gradient": {
        "local.steps": 3,
        "local.batch": 16,
        "local.exact_gradient": True,
        "rule.kind": "ada-gd",
        "rule.delta": 0.1,
    },
    "own": {"decides_on": "own", "local.steps": 3, "step_size": 0.15},
    "own retain": {
        "decides_on": "own",
        "local.steps": 2,
        "rule.kind": "retain",
        "local.batch": 16,
    },
    "participation": {"participation": 0.5, "local.batch": 16},
    "participation fedfv": {"participation": 0.4, "rule.kind": "fedfv", "rule.tau": 2},
    "participation retain": {"participation": 0.6, "rule.kind": "retain"},
    "last stays": {"last_stays": True, "epsilon": 1.4},
    "epsilon list": {"epsilon": [0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2]},
    "epsilon local": {"epsilon": '"4.0 * local"', "model.kind": "softmax-regression"},
    "load": {"rule.kind": "mw-fed", "rule.variant": "load", "local.batch": 16},
    "preview few": {"participation": 0.4, "policy.kind": "preview"},
    "preview arrivals": {
        "policy.kind": "preview",
        "schedule.kind": "arrive",
        "schedule.at": [8, 16],
        "library.keep": 3,
        "library.every": 5,
    },
    "preview steps": {"policy.kind": "preview", "local.steps": 3, "local.batch": 16},
    "preview adam": {"policy.kind": "preview", "server.optimiser": "adam", "server.lr": 0.05},
    "alone": {"compare_alone": True},
    "gram": {"record_gram": True, "rule.kind": "ada-gd", "rule.delta": 0.1},
    "check reports": {"check_reports": True, "behaviour.kind": "lying", "behaviour.offset": 0.4},
    "check reports convex": {
        "check_reports": True,
        "behaviour.kind": "lying",
        "behaviour.offset": 3.0,
        "model.kind": "softmax-regression",
    },
    "privacy": {
        "privacy.clip": 1.0,
        "privacy.loss_clip": 2.0,
        "privacy.noise": 0.3,
        "privacy.delta": 1e-5,
    },
    "privacy retain": {
        "privacy.clip": 1.0,
        "privacy.loss_clip": 3.0,
        "privacy.noise": 0.05,
        "privacy.delta": 1e-5,
        "rule.kind": "retain",
        "local.batch": 20,
    },
}


def traced() -> Case:
    """A run whose agents are there as a file says."""
    settings = {"schedule.kind": "trace", "schedule.path": "times.csv"}

    def do(scratch: Scratch) -> None:
        times = scratch.write("times.csv", "agent,from,to\n0,1,9\n0,20,\n7,5,25\n")
        experiment = scratch.write("experiment.toml", DIGITS)
        scratch.run(experiment, {**settings, "schedule.path": str(times)})

    return Case("schedule: trace", do, settings)


def runs() -> list[Case]:
    """All of the above, each once or twice."""
    cases = []
    for name, more in RULES.items():
        rule = {"rule.kind": name.split()[0], **more}
        cases.append(run(f"rule on digits: {name}", DIGITS, rule))
        if name.startswith("fairfed"):
            continue  # needs rows with groups
        rule = {key: value for key, value in rule.items() if key.startswith("rule.")}
        cases.append(run(f"rule on observation-3: {name}", PROBLEM, rule))
        many = {"problem.kind": "huber", "problem.agents": 6, "step_size": 2.0, **rule}
        cases.append(run(f"rule on huber: {name}", PROBLEM, many))
    for name, more in BEHAVIOURS.items():
        for rule in ("fedavg", "retain"):
            settings = {"behaviour.kind": name.split()[0], "rule.kind": rule, **more}
            cases.append(run(f"behaviour under {rule}: {name}", DIGITS, settings, varied=True))
        settings = {"behaviour.kind": name.split()[0], "problem.kind": "huber", "step_size": 2.0, **more}
        cases.append(run(f"behaviour on huber: {name}", PROBLEM, settings))
    for name, more in SCHEDULES.items():
        for rule in ("fedavg", "retain"):
            settings = {"schedule.kind": name, "rule.kind": rule, **more}
            cases.append(run(f"schedule under {rule}: {name}", DIGITS, settings, varied=True))
        settings = {"schedule.kind": name, "problem.kind": "huber", "step_size": 2.0, **more}
        cases.append(run(f"schedule on huber: {name}", PROBLEM, settings))
    cases.append(traced())
    for name, more in POLICIES.items():
        for rule in ("fedavg", "maxfl", "ada-gd"):
            settings = {"policy.kind": name.split()[0], "rule.kind": rule, **more}
            cases.append(run(f"policy around {rule}: {name}", DIGITS, settings))
        settings = {"policy.kind": name.split()[0], "problem.kind": "observation-3", **more}
        cases.append(run(f"policy on observation-3: {name}", PROBLEM, settings))
    for policies in TOGETHER:
        settings = {"policy": list(policies), "rule.kind": "fedavg"}
        name = "+".join(policies)
        cases.append(run(f"policies: {name}", DIGITS, settings, varied=True))
        settings = {**settings, "problem.kind": "huber"}
        cases.append(run(f"policies on huber: {name}", PROBLEM, settings))
    for name, more in OPTIMISERS.items():
        for rule, policy in (("fedavg", "none"), ("fedavg", "guard"), ("ada-gd", "none")):
            settings = {"rule.kind": rule, "policy.kind": policy, "server.optimiser": name, **more}
            cases.append(run(f"optimiser around {rule}, {policy}: {name}", DIGITS, settings))
    booked = {"worth.methods": ["help", "loo", "gtg", "cgsv", "fedce", "reputation"]}
    cases.append(run("worth", DIGITS, {**booked, "agents": 4}, varied=True))
    booked = {"worth.methods": ["help", "shapley"], "problem.kind": "huber"}
    cases.append(run("worth on huber", PROBLEM, booked))
    for name, more in PROBLEMS.items():
        for rule in ("fedavg", "ada-gd", "retain"):
            settings = {"problem.kind": name, "rule.kind": rule, **more}
            cases.append(run(f"problem under {rule}: {name}", PROBLEM, settings))
    for name, more in STREAMS.items():
        cases.append(run(f"stream: {name}", DIGITS, {"stream.kind": name.split()[0], **more}, varied=True))
    for how in ("keep", "retrain", "eraser", "subtract"):
        asks = {"behaviour.kind": "withdrawing", "behaviour.after": 9, "forget.agents": [2]}
        every = {"forget.every": 3} if how == "eraser" else {}
        asks = {**asks, "forget.how": how, **every}
        cases.append(run(f"forget: {how}", DIGITS, asks, varied=True))
    for name, more in TRAINING.items():
        cases.append(run(f"training: {name}", DIGITS, more, varied=True))
    return cases
