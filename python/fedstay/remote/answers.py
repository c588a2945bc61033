"""The answers of one round, and which of them are unusable."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import Report
from .door import number, outliers, reason
from .roll import M, Member, Roll


@dataclass
class Answers:
    """What came back in a round so far, by agent."""

    reports: dict[int, Report] = field(default_factory=dict)
    goodbyes: list[int] = field(default_factory=list)
    #: Reporting agents for which somebody else had said goodbye.
    returned: list[int] = field(default_factory=list)
    #: How far each report would move the model, and the largest number in it.
    moves: dict[int, float] = field(default_factory=dict)
    tells: dict[int, float] = field(default_factory=dict)
    faults: dict[str, str] = field(default_factory=dict)

    def told(self) -> list[str]:
        """Every reason for a missing answer, as far as that is known."""
        return [f"agent {name}: {why}" for name, why in self.faults.items()]

    def reasons(self) -> str:
        """Why answers are missing, shortly."""
        told = self.told()
        more = f" (and {len(told) - 3} more)" if len(told) > 3 else ""
        return "".join(f"; {why}" for why in told[:3]) + more

    def heard(self, member: Member) -> bool:
        """Whether the agent gave a usable answer."""
        return member.id in self.reports or member.id in self.goodbyes

    def by_agent(self) -> list[dict[int, Any]]:
        """Everything that belongs to a report."""
        return [self.reports, self.moves, self.tells]

    def add(
        self, member: Member, made: Report, move: float, tells: float, round: int | None
    ) -> None:
        """Takes a report that was checked; `round` is the one in which it told its exact loss, if it did."""
        self.reports[member.id] = made
        self.moves[member.id], self.tells[member.id] = move, tells
        if made.loss is not None and round is not None:
            member.loss, member.loss_round = made.loss, round

    @contextmanager
    def of(self, member: Member) -> Iterator[None]:
        """Reads an answer: whatever an agent sends, it can only lose its own place in this round."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            why = reason(error)
            for prefix in (f"agent {member.id}: ", f"agent {member.name}: "):
                why = why.removeprefix(prefix)
            self.faults[member.name] = why
        else:
            self.faults.pop(member.name, None)

    def drop(self, member: Member, why: str) -> None:
        """Takes a report back as its agent's fault."""
        if member.id in self.returned:
            self.returned.remove(member.id)
        for kept in self.by_agent():
            kept.pop(member.id, None)
        self.faults[member.name] = why

    def drop_secrets(self, roll: Roll[M], rule: str) -> None:
        """A rule that computes with losses cannot use a report without one."""
        for member in roll.still_in():
            made = self.reports.get(member.id)
            if made is not None and made.loss is None:
                self.drop(member, f"it keeps its loss, which {rule} needs")

    def drop_garbage(self, roll: Roll[M], weights: NDArray[np.float64], max_ratio: float) -> None:
        """Finite nonsense stands out: it is beyond all that the model and the others are like."""
        with np.errstate(over="ignore"):
            length = float(np.linalg.norm(weights))
        self.drop_outliers(
            roll,
            self.moves,
            max(length, 1.0),
            max_ratio,
            "its report would move the model by {size} and {beyond}, what the model and the other reports "
            "are like",
        )
        self.drop_outliers(
            roll,
            self.tells,
            1.0,
            max_ratio,
            "it tells a loss or a target of size {size}, which {beyond}, what the others tell",
        )

    def drop_outliers(
        self, roll: Roll[M], sizes: Mapping[int, float], usual: float, max_ratio: float, why: str
    ) -> None:
        """Drops the reports whose `sizes` stand out; `why` says so, with {size} and {beyond}."""
        by_id = {member.id: member for member in roll.members.values()}
        for agent, typical in outliers(sizes, usual, max_ratio).items():
            beyond = f"is taken for garbage, beyond `max_ratio` = {max_ratio:g} times {typical:.3g}"
            self.drop(by_id[agent], why.format(size=f"{sizes[agent]:.3g}", beyond=beyond))


def target_loss(said: Mapping[str, Any], member: Member, sent: float | None) -> float | None:
    """The target loss that an agent reported now or before, else the one it was sent."""
    if said.get("epsilon") is not None:
        return number(said, "epsilon")
    return member.epsilon if member.epsilon is not None else sent
