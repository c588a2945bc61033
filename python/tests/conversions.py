"""The changes that docs/flower.md shows, read from there and made to copies of the apps."""

import re
import shutil
from pathlib import Path

HERE = Path(__file__).parent
GUIDE = HERE.parents[1] / "docs" / "flower.md"


def documented():
    """The diffs of the guide, by the app that they change."""
    shown = r"<!-- python/tests/apps/(\S+) -->\n```diff\n(.*?)```"
    return dict(re.findall(shown, GUIDE.read_text(), re.DOTALL))


def hunks(diff):
    """The file, what is there, and what comes instead, for every `@@`."""
    for part in re.split(r"^--- ", diff, flags=re.MULTILINE)[1:]:
        name, *rest = re.split(r"^@@\n", part, flags=re.MULTILINE)
        for hunk in rest:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if line[0] in " -")
            after = "".join(line[1:] for line in lines if line[0] in " +")
            yield name.strip(), before, after


def changed_lines(diff):
    """How many lines are new or different, blank ones apart. A line that another one replaces is
    counted once, and so is one that merely goes."""
    count = 0
    for _, before, after in hunks(diff):
        old, new = (
            [line for line in text.splitlines() if line.strip()] for text in (before, after)
        )
        added = [line for line in new if line not in old]
        removed = [line for line in old if line not in new]
        count += max(len(added), len(removed))
    return count


def convert(app, folder):
    """A copy of an app in `folder`, changed as the guide says; each place must be there once."""
    shutil.copytree(HERE / "apps" / app, folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name, before, after in hunks(documented()[app]):
        path = next(folder.rglob(name))
        text = path.read_text()
        assert text.count(before) == 1, (
            f"{app}, {name}: {before!r} is there {text.count(before)} times"
        )
        path.write_text(text.replace(before, after))
    return folder
