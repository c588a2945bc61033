"""Every example in a docstring, and in the guide, runs."""

import doctest
import importlib
import importlib.metadata
import importlib.util
import inspect
import pkgutil
import re
from pathlib import Path

import fedstay
import pytest
from fedstay import _core

DOCS = Path(__file__).parents[2] / "docs"


def documented():
    """The docstrings with examples, by name; doctest itself does not look into compiled modules."""
    modules = [fedstay, _core]
    flare = importlib.util.find_spec("nvflare") is not None
    for module in pkgutil.walk_packages(fedstay.__path__, "fedstay."):
        # FLARE is not among the requirements of these tests: scripts/test-flare has its own.
        if flare or not module.name.startswith("fedstay.flare"):
            modules.append(importlib.import_module(module.name))
    found = {}
    for module in modules:
        things = [(module.__name__, module)]
        for name, thing in vars(module).items():
            ours = str(getattr(thing, "__module__", "")).startswith("fedstay")
            if not ours:
                continue
            if callable(thing):
                things.append((name, thing))
            if inspect.isclass(thing):
                things += [(f"{name}.{n}", t) for n, t in vars(thing).items()]
        for name, thing in things:
            text = inspect.getdoc(thing) or ""
            if ">>>" in text:
                found[name] = text
    return found


@pytest.mark.parametrize("name", sorted(documented()))
def test_docstring(name):
    run(name, documented()[name])


def test_there_are_examples():
    assert {"Server", "Report", "simulate", "run", "Result", "AdaGd", "Behaviour", "tau"} <= {
        *documented(),
        "AdaGd",
    }


def test_this_is_the_version_that_the_documents_say():
    """A client of fedstay 0.1 is another one than those that are built from here."""
    version = importlib.metadata.version("fedstay")
    changes = (DOCS.parent / "CHANGELOG.md").read_text()
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == version
    wheels = re.findall(r"fedstay-([0-9.]+)-cp", (DOCS / "flower.md").read_text())
    assert wheels and set(wheels) == {version}


@pytest.mark.parametrize("guide", ["python.md", "flower.md"])
def test_the_guide(guide):
    run(f"docs/{guide}", (DOCS / guide).read_text())


def run(name, text):
    test = doctest.DocTestParser().get_doctest(text, {}, name, None, 0)
    assert test.examples, f"{name} has no examples"
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    output = []
    runner.run(test, out=output.append)
    assert runner.failures == 0, "".join(output)
