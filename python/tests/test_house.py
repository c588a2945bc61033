"""The house of the Python package, read from its sources: who may import whom, and who may look inside whom."""

import ast
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "fedstay"
#: What is told apart: who carries the messages, and what both share.
WINGS = {"remote": set(), "flower": {"remote"}, "flare": {"remote"}}
FRAMEWORKS = {"flwr": "flower", "nvflare": "flare"}
MODULES = {
    str(path.relative_to(SOURCES)): ast.parse(path.read_text())
    for path in sorted(SOURCES.rglob("*.py"))
}


def wing_of(name):
    return name.split("/")[0] if "/" in name else None


def imported(name):
    """The modules that one imports anywhere, for types only too, as paths below the package; and packages
    of others."""
    folder = name.split("/")[:-1]
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.ImportFrom):
            base = [*folder[: len(folder) - node.level + 1], *(node.module or "").split(".")]
            base = [part for part in base if part]
            for alias in node.names:
                paths = ("/".join([*base, alias.name]), "/".join(base))
                found = [f"{path}.py" for path in paths if f"{path}.py" in MODULES]
                yield found[0] if found else "/".join([*base, "__init__.py"])


@pytest.mark.parametrize("name", MODULES)
def test_a_wing_uses_what_is_shared_and_its_own_framework(name):
    wing = wing_of(name)
    for other in imported(name):
        framework = FRAMEWORKS.get(other)
        assert framework is None or framework == wing, f"{name} imports {other}"
        there = wing_of(other) if other in MODULES else None
        # Nothing outside a wing needs it, so that a framework is imported only where it is used.
        assert there in (None, wing) or (wing in WINGS and there in WINGS[wing]), (
            f"{name} imports {other}"
        )


def test_no_module_imports_itself_through_others():
    graph = {
        name: {o for o in imported(name) if o in MODULES and not o.endswith("__init__.py")}
        for name in MODULES
        if wing_of(name) in WINGS
    }
    for start in graph:
        seen, waiting = set(), list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph.get(name, ())
        assert start not in seen, f"{start} imports itself, by way of {sorted(seen)}"


@pytest.mark.parametrize("name", [name for name in MODULES if wing_of(name) in WINGS])
def test_nobody_looks_inside_another_object(name):
    """Engines and strategies are given values: an attribute with an underscore is its own object's."""
    for node in ast.walk(MODULES[name]):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and node.attr[1] != "_":
            own = isinstance(node.value, ast.Name) and node.value.id in (
                "self",
                "cls",
                "sys",
                "_core",
            )
            parent = (
                isinstance(node.value, ast.Call) and getattr(node.value.func, "id", "") == "super"
            )
            static = isinstance(node.value, ast.Name) and node.value.id[0].isupper()
            assert own or parent or static, f"{name}:{node.lineno} uses .{node.attr}"


def test_the_guard_can_fail():
    """As things were: the engine imported the strategy, for types, and used its private attributes."""
    MODULES["flower/_old.py"] = ast.parse(
        "from ._strategy import FedStay\nimport nvflare\ndef f(strategy): strategy._layout"
    )
    try:
        assert "flower/_strategy.py" in set(imported("flower/_old.py"))
        for guard in (
            test_a_wing_uses_what_is_shared_and_its_own_framework,
            test_nobody_looks_inside_another_object,
        ):
            with pytest.raises(AssertionError, match=r"flower/_old\.py"):
                guard("flower/_old.py")
    finally:
        del MODULES["flower/_old.py"]
