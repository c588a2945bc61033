"""`fedstay step`: every rule on reports that are made up, round after round."""

import json
import math
from collections.abc import Callable

from cases import RULES, Case
from scratch import Scratch


def report(agent: int, turn: int) -> dict:
    """What an agent might say in this round: decimals that are awkward in binary, no randomness."""
    direction = [((7 * agent + 3 * i + 5 * turn) % 11 - 5) / 7 for i in range(6)]
    loss = 2.1 / (1 + turn) * (agent + 1) / 3 + 0.05
    return {"agent": agent, "loss": loss, "epsilon": 0.3, "direction": direction}


def private(told: dict) -> dict:
    """A report in privacy mode: τ instead of its loss and target loss."""
    norm = math.sqrt(sum(x * x for x in told["direction"]))
    tau = (told["loss"] - told["epsilon"] - 0.1) / norm
    return {"agent": told["agent"], "direction": told["direction"], "tau": tau}


def steps(
    name: str,
    rule: dict,
    change: Callable[[dict], dict] = lambda told: told,
    policy: dict | list | None = None,
) -> Case:
    """Five rounds of `fedstay step`, with the state passed back; the third without one agent."""

    def do(scratch: Scratch) -> None:
        answers, state = [], None
        for turn in range(5):
            agents = [a for a in range(4) if (turn, a) != (2, 1)]
            told = {"rule": rule, "step_size": 0.15, "reports": []}
            told["reports"] = [change(report(agent, turn)) for agent in agents]
            if policy:
                told["policy"] = policy
            if state is not None:
                told["state"] = state
            answers.append(scratch.fedstay("step", told=json.dumps(told)))
            answer = json.loads(answers[-1])
            state = answer["state"]
            if answer["stop"] is not None:
                break
        scratch.keep_text("steps.jsonl", "".join(json.dumps(json.loads(a)) + "\n" for a in answers))

    return Case(f"step: {name}", do, {})


def all_steps() -> list[Case]:
    """Every rule and policy, and everything that a report may say."""
    cases = []
    for name, more in RULES.items():
        if name.split()[0] in ("scaffold", "fairfed"):
            continue  # They ask agents for more than a report of this kind has.
        parameters = {k.removeprefix("rule."): v for k, v in more.items() if k.startswith("rule.")}
        cases.append(steps(name, {"kind": name.split()[0], **parameters}))
    ada_gd = {"kind": "ada-gd", "delta": 0.1}
    cases.append(steps("privacy mode", ada_gd, private))
    cases.append(steps("reach and samples", {"kind": "fedavg"}, lambda told: {
        **told, "reach": 0.3 + 0.1 * told["agent"], "samples": 10 + told["agent"],
    }))  # fmt: skip
    cases.append(steps("exact gradients", ada_gd, lambda told: {
        **told, "reach": 0.45, "gradient": [x * 0.9 + 0.01 for x in told["direction"]],
    }))  # fmt: skip
    cases.append(steps("standard errors", {"kind": "retain"}, lambda told: {
        **told, "standard_error": 0.02,
    }))  # fmt: skip
    for policy in ({"kind": "guard", "delta": 0.02}, {"kind": "early-stop"}, {"kind": "keep-best"}):
        cases.append(steps(f"fedavg + {policy['kind']}", {"kind": "fedavg"}, policy=policy))
    several = [{"kind": "guard", "delta": 0.02}, "keep-best"]
    cases.append(steps("fedavg + guard + keep-best", {"kind": "fedavg"}, policy=several))
    return cases
