"""Agents whose replies are made private before they leave: how that is found out, and what is sent then.

Noise that a mod or an optimiser puts into trained weights is worth nothing if the exact gradient and the
exact loss travel beside them. So a private report has what the train function and the mods left, and no
gradient; its loss is withheld (what is sent says only that the agent stays) or has noise of its own.
"""

from __future__ import annotations

import functools
import inspect
import math
import random
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any

from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

from .._core import Error

__all__ = [
    "Loss",
    "inner_mods",
    "is_private",
    "open_numbers",
    "outer_privatiser",
    "privatiser",
    "privatiser_of",
    "refuse_outer",
    "remember",
    "remembered",
    "reply_of",
]

Call = Callable[[Message, Context], Message]

#: Packages that exist to privatise training.
PACKAGES = {
    "opacus",
    "fastDP",
    "private_transformers",
    "dp_transformers",
    "tensorflow_privacy",
    "jax_privacy",
}
#: Flower's mods that do.
MODS = {"LocalDpMod", "fixedclipping_mod", "adaptiveclipping_mod"}
#: Where Flower makes chains of mods, and where its own mods are that only look.
CHAINS = {"flwr.client.mod.utils", "flwr.clientapp.client_app"}
LOOKERS = {"flwr.clientapp.mod.comms_mods", "flwr.client.mod.comms_mods"}
#: Packages that are nobody's app.
OTHERS = {"flwr", "fedstay", "torch", "numpy", *sys.stdlib_module_names}
#: The most things that are looked at; and how long a list may be, which else has data.
MOST, FEW = 5000, 64
#: Where a node keeps that what it trains is private, and why.
KEPT = "fedstay-private"
#: The one number of an app's own that a private agent sends unless others are named.
ROWS = "num-examples"
#: What a private agent is told to say where no loss of its own can be sent.
NOISE = "give `loss_clip=` and `loss_noise=`"


def privatiser(*things: Any) -> str | None:
    """What privatises training among these functions, objects and what they refer to, as far as can be
    seen: classes and modules by name."""
    for thing in _reached(list(things)):
        kinds = thing.__mro__ if isinstance(thing, type) else (thing, *type(thing).__mro__)
        for kind in kinds:
            name = getattr(kind, "__name__", None)
            module = name if isinstance(kind, ModuleType) else getattr(kind, "__module__", None)
            if not isinstance(name, str) or not isinstance(module, str):
                continue
            package = module.split(".")[0]
            if package in PACKAGES:
                return package if name == module else f"{package}.{name}"
            if package == "flwr" and name in MODS:
                return name
    return None


def _reached(waiting: list[Any]) -> Iterator[Any]:
    """These things and what they refer to: closures, what is bound, and the names that functions of their
    own packages use. Other packages are not searched: they name more than an app uses."""
    # The things themselves, so that no number is given to another one meanwhile.
    seen: dict[int, Any] = {}
    packages = {_package(thing) for thing in waiting} - OTHERS

    def ours(thing: Any) -> bool:
        return _package(thing) in packages

    while waiting and len(seen) < MOST:
        thing = waiting.pop()
        if thing is None or id(thing) in seen:
            continue
        seen[id(thing)] = thing
        yield thing
        if isinstance(thing, functools.partial):
            waiting += [thing.func, *thing.args, *thing.keywords.values()]
        elif isinstance(thing, MethodType):
            waiting += [thing.__self__, thing.__func__]
        elif isinstance(thing, FunctionType):
            within = _cells(thing).values()
            # A decorator of another package has the app's function in its closure.
            packages |= {_package(f) for f in within if isinstance(f, FunctionType)} - OTHERS
            waiting += within
            if ours(thing):
                waiting += _named(thing)
        elif isinstance(thing, (list, tuple)):
            waiting += thing if len(thing) <= FEW else ()
        elif isinstance(thing, type):
            if ours(thing):
                waiting += [part for part in vars(thing).values() if isinstance(part, FunctionType)]
        elif not isinstance(thing, ModuleType) and ours(thing):
            waiting += [type(thing), *getattr(thing, "__dict__", {}).values()]


def _package(thing: Any) -> str:
    """The package of a function, a class, or an object's class."""
    of = thing if isinstance(thing, (FunctionType, type)) else type(thing)
    return str(of.__module__).split(".")[0]


def _cells(function: FunctionType) -> dict[str, Any]:
    """What a function has closed over."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # Nothing is in it yet.
            continue
    return found


def _named(function: FunctionType) -> list[Any]:
    """What a function's code names: globals, attributes of modules, and imports of its own."""
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names |= set(code.co_names)
        codes += [const for const in code.co_consts if isinstance(const, CodeType)]
    there = function.__globals__
    found = [there[name] for name in names if name in there]
    for module in [one for one in found if isinstance(one, ModuleType)]:
        if module.__name__.split(".")[0] not in OTHERS:
            found += [vars(module)[name] for name in names if name in vars(module)]
    packages = {name.split(".")[0] for name in names} & PACKAGES
    # Imported inside the function: there is no object to look at before it has run.
    return found + [ModuleType(package) for package in packages]


def inner_mods(call: Call) -> tuple[list[Any], Call]:
    """The mods of a chain as Flower makes it, outermost first, and the function inside them."""
    mods = []
    while isinstance(call, FunctionType) and {"_mod", "_ffn"} <= _cells(call).keys():
        mods.append(_cells(call)["_mod"])
        call = _cells(call)["_ffn"]
    return mods, call


def reply_of(call: Call, message: Message, context: Context) -> tuple[Message, bool]:
    """What a chain of mods replies, and whether its mods changed the arrays of the function inside."""
    mods, function = inner_mods(call)
    if not mods:
        return call(message, context), False
    inside: list[Any] = []

    def watched(message: Message, context: Context) -> Message:
        reply = function(message, context)
        inside.append(_arrays(reply))
        return reply

    chain: Call = watched
    for mod in reversed(mods):
        chain = functools.partial(_through, mod, chain)
    reply = chain(message, context)
    return reply, inside != [_arrays(reply)]


def _through(mod: Any, call: Call, message: Message, context: Context) -> Message:
    reply: Message = mod(message, context, call)
    return reply


def _arrays(reply: Message) -> Any:
    """The bytes of a reply's arrays, which mods replace and do not write into."""
    if reply.has_error():
        return None
    return [
        (name, [(key, array.data) for key, array in record.items()])
        for name, record in reply.content.array_records.items()
    ]


def refuse_outer(*, strange: bool) -> None:
    """Refuses mods around the caller that privatise: Flower's own, which would let the loss through and
    not the goodbye; and with `strange` all others, of which nobody can tell what they do."""
    for name, package, private in _outer_mods():
        if private:
            raise Error(
                f"{name} comes before fedstay, so it would make neither the loss private nor let a goodbye "
                f"pass: let `agent_mod` be the first mod, `ClientApp(mods=[agent_mod(…), {name}(…)])`, "
                "around a train function that returns trained weights"
            )
        if strange and package not in OTHERS:
            raise Error(
                f"the mod `{name}` comes before `agent_mod`, which cannot see whether it makes replies "
                "private: let `agent_mod` be the first mod, or say `agent_mod(…, private=False)` if it "
                "does not"
            )


def outer_privatiser() -> str | None:
    """Flower's mod around the caller that privatises, if there is one."""
    return next((name for name, _, private in _outer_mods() if private), None)


def _outer_mods() -> Iterator[tuple[str, str, bool]]:
    """What may be mods around the caller: its name, its package, and whether Flower's to privatise."""
    for frame in _outer_frames():
        module = str(frame.f_globals.get("__name__"))
        package = module.split(".")[0]
        own = frame.f_locals.get("self")
        name = frame.f_code.co_name if own is None else type(own).__name__
        if module in CHAINS or module in LOOKERS or package == "fedstay":
            continue
        private = package == "flwr" and name in MODS
        yield name, package, private or any(kind.__name__ in MODS for kind in type(own).__mro__)


def _outer_frames() -> Iterator[FrameType]:
    """The frames between the caller and the app that it is in, if it is in one."""
    frames: list[FrameType] = []
    frame = inspect.currentframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), ClientApp):
            yield from frames
            return
        frames.append(frame)
        frame = frame.f_back


def privatiser_of(agent: Any) -> str | None:
    """What privatises the training of a PyTorch agent, as far as it can be seen."""
    found = privatiser(agent.model, *agent.trainers())
    if found is None and any(hasattr(p, "grad_sample") for p in agent.model.parameters()):
        return "gradients of single samples"
    return found


def is_private(
    given: bool | None, how: Loss, found: str | None, *, certain: bool, changed: bool
) -> bool:
    """Whether a reply is private, by what was given and what was found."""
    if given is False and certain:
        raise Error(
            f"`private=False`, but {found} is among the app's mods: leave `private` out, or take the mod out"
        )
    if given is False and how.clip is not None:
        raise Error("`private=False` and `loss_noise=`: leave one of them out")
    if given is not None:
        return given
    return found is not None or changed or how.clip is not None


def remember(context: Context, why: str) -> None:
    """Keeps that what this node trains is private: its evaluations are to be so as well."""
    context.state[KEPT] = ConfigRecord({"why": why})


def remembered(context: Context) -> str | None:
    """Why what this node trains is private, if it is."""
    kept: Any = context.state.get(KEPT, {})
    why: str | None = kept.get("why")
    return why


def open_numbers(metrics: Mapping[str, Any], tells: Collection[str]) -> dict[str, Any]:
    """What a private agent sends of its app's own numbers: how many rows it has, and those that it has said
    to be private already."""
    return {key: value for key, value in metrics.items() if key == ROWS or key in tells}


@dataclass(frozen=True)
class Loss:
    """How the loss of a private agent is told.

    clip, noise : it is clipped to [0, clip], and Gaussian noise of deviation noise · clip / 2 is added, as
        `privacy.loss_clip` and `privacy.noise` have it; without them it is withheld.
    """

    clip: float | None = None
    noise: float | None = None

    def __post_init__(self) -> None:
        if (self.clip is None) != (self.noise is None):
            raise Error("`loss_clip` and `loss_noise` belong together: give both, or neither")
        for name, value in (("loss_clip", self.clip), ("loss_noise", self.noise)):
            if value is not None and not 0.0 < value < math.inf:
                raise Error(f"`{name}` is {value}, but must be a finite number above 0")

    def told(self, loss: float, epsilon: float, behaviour: str) -> dict[str, Any]:
        """What a report says of the loss."""
        if self.clip is None or self.noise is None:
            if behaviour != "threshold":
                raise Error(
                    f"it is private and withholds its loss, which says that the loss is above ε; as "
                    f"`{behaviour}` decides, that need not be so: {NOISE}"
                )
            # It stays, so its loss is above its ε: that says nothing new.
            return {"loss": math.nextafter(epsilon, math.inf), "at-least": True}
        if self.clip <= epsilon:
            raise Error(f"`loss_clip` is {self.clip:g}, but must be above ε = {epsilon:g}")
        return {"loss": self.noisy(loss), "standard_error": self.noise * self.clip / 2.0}

    def noisy(self, loss: float) -> float:
        """The loss, clipped and with noise, where these are given."""
        assert self.clip is not None and self.noise is not None
        # Never from a seed: one who could guess that would take the noise off again.
        noise = random.SystemRandom().gauss(0.0, self.noise * self.clip / 2.0)
        return min(max(loss, 0.0), self.clip) + noise
