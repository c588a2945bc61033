from collections.abc import Callable
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "Behaviour",
    "Decision",
    "Error",
    "Outcome",
    "Report",
    "Server",
    "Sweep",
    "__version__",
    "complete_rule",
    "draw",
    "drive",
    "keys",
    "listed",
    "read_folder",
    "run_experiment",
    "run_family",
    "tau",
]

__version__: str

class Error(Exception):
    agent: int | None

@final
class Report:
    def __new__(
        cls,
        agent: int,
        direction: Any,
        *,
        loss: float | None = None,
        epsilon: float | None = None,
        standard_error: float | None = None,
        at_least: bool = False,
        tau: float | None = None,
        gradient: Any = None,
        reach: float | None = None,
        samples: int = 1,
    ) -> Report: ...
    @property
    def agent(self) -> int: ...
    @property
    def loss(self) -> float | None: ...
    @property
    def epsilon(self) -> float | None: ...
    @property
    def direction(self) -> NDArray[Any]: ...
    @property
    def samples(self) -> int: ...
    def check(self, dimension: int, *, epsilon: float | None = None) -> None: ...

@final
class Server:
    def __new__(
        cls, weights: Any, rule: Any, step_size: float, *, policy: Any = None
    ) -> Server: ...
    def step(self, reports: list[Report], goodbyes: list[int] = ...) -> Decision: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...
    @property
    def delivered(self) -> NDArray[np.float64]: ...
    @property
    def displacement(self) -> NDArray[np.float64]: ...
    @property
    def round(self) -> int: ...
    @property
    def step_size(self) -> float: ...
    @property
    def rule(self) -> str: ...
    @property
    def needs_exact_losses(self) -> bool: ...
    @property
    def loads(self) -> dict[int, float] | None: ...
    def state(self) -> bytes: ...
    @staticmethod
    def from_state(state: bytes) -> Server: ...

@final
class Decision:
    @property
    def d(self) -> list[int]: ...
    @property
    def nd(self) -> list[int]: ...
    @property
    def case(self) -> int | None: ...
    @property
    def stop(self) -> str | None: ...
    @property
    def step_size(self) -> float: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def landed(self) -> str | None: ...

@final
class Behaviour:
    def __new__(cls, behaviour: Any = None) -> Behaviour: ...
    def leaves(
        self,
        *,
        loss: float,
        epsilon: float,
        round: int = 1,
        agent: int = 0,
        present: bool = True,
        step_size: float = 0.0,
        descended: Callable[[int, float], float] | None = None,
    ) -> bool: ...
    def told(self, loss: float) -> float: ...
    def assign(self, agents: int, seed: int) -> list[Behaviour]: ...
    def memory(self) -> str: ...
    def recall(self, memory: str) -> None: ...
    @property
    def works(self) -> bool: ...
    @property
    def comes_back(self) -> bool: ...
    @property
    def repeats(self) -> bool: ...
    @property
    def name(self) -> str: ...

@final
class Outcome:
    @property
    def header(self) -> str: ...
    @property
    def rounds(self) -> list[str]: ...
    @property
    def summary(self) -> str: ...
    @property
    def weights(self) -> NDArray[np.float64]: ...

@final
class Sweep:
    def __new__(
        cls, file: Path, set: list[tuple[str, str]] = ..., *, store: Path | None = None
    ) -> Sweep: ...
    @property
    def store(self) -> Path: ...
    @property
    def planned(self) -> int: ...
    def missing(self) -> list[list[str]]: ...
    def take(self, parcel: str) -> int: ...
    def compute(self, threads: int) -> int: ...
    def columns(self, series: bool) -> dict[str, list[Any]]: ...

def listed(what: str) -> list[tuple[str, str, str]]: ...
def keys() -> list[tuple[str, str, str]]: ...
def complete_rule(rule: Any) -> str: ...
def tau(*, loss: float, epsilon: float, delta: float, norm: float) -> float: ...
def drive(
    engine: Any,
    weights: Any,
    rule: Any,
    *,
    step_size: float,
    rounds: int,
    policy: Any = None,
    behaviour: Any = None,
    on: str = "python",
    seed: int = 0,
    out: Path | None = None,
    resume: bool = False,
    seconds_between_checkpoints: float = 0.5,
    settings: str = "{}",
    layout: list[tuple[str, list[int]]] = ...,
) -> Outcome: ...
def run_experiment(
    text: str,
    set: list[tuple[str, str]] = ...,
    *,
    out: Path | None = None,
    resume: bool = False,
    threads: int | None = None,
) -> Outcome: ...
def read_folder(path: Path) -> tuple[str, list[str]]: ...
def draw(header: str, rounds: list[str], form: str) -> bytes: ...
def run_family(experiments: list[str], threads: int) -> str: ...
