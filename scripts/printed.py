"""Whether a document prints what its commands print.

    python3 scripts/printed.py DOCUMENT OUTPUT

Every block under `<!-- scripts/test-readme finds this -->` must stand in OUTPUT, line after line. Words and
small counts must be the same. Other numbers may differ by two hundredths, or by one if they are whole: other
kinds of processors round single precision in another way.
"""

import re
import sys
from pathlib import Path

MARK = "<!-- scripts/test-readme finds this -->"
NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def blocks(text: str) -> list[list[str]]:
    """The lines of every marked block, and of each its words."""
    found = []
    for part in text.split(MARK)[1:]:
        fenced = re.match(r"\s*```text\n(.*?)\n```", part, re.DOTALL)
        if fenced is None:
            raise SystemExit(f"a mark `{MARK}` stands over something that is no ```text block")
        found.append([line for line in fenced[1].split("\n") if line.strip()])
    return found


def same(written: str, printed: str) -> bool:
    """Whether two lines are the same but for spaces, rulers and the last digits.

    >>> same("retain  nobody  25  89.2%", "retain   nobody    25   89.1%")
    True
    >>> same("retain  nobody  14  89.2%", "retain  nobody  23  89.2%")
    False
    >>> same("retain  3 of 4", "retain  2 of 4")
    False
    >>> same("retain  nobody", "retain  1 of 4")
    False
    """
    mine, theirs = (re.sub(r"-{2,}", "--", line).split() for line in (written, printed))
    return len(mine) == len(theirs) and all(map(same_word, mine, theirs))


def same_word(mine: str, theirs: str) -> bool:
    if mine == theirs:
        return True
    if NUMBER.sub("#", mine) != NUMBER.sub("#", theirs):
        return False
    pairs = zip(NUMBER.findall(mine), NUMBER.findall(theirs), strict=True)
    return all(near(float(a), float(b), whole="." not in a + b) for a, b in pairs)


def near(a: float, b: float, *, whole: bool) -> bool:
    if whole and a < 20:
        return a == b
    return abs(a - b) <= max(0.02 * abs(a), 1.0 if whole else 0.0)


def stands_in(block: list[str], printed: list[str]) -> bool:
    """Whether the lines stand there, one after the other.

    >>> stands_in(["b 2", "c 3"], ["a 1", "b 2", "c 3"])
    True
    >>> stands_in(["b 2", "c 5"], ["a 1", "b 2", "c 3"])
    False
    """
    starts = range(len(printed) - len(block) + 1)
    return any(all(map(same, block, printed[start:])) for start in starts)


def main() -> None:
    document, output = (Path(path).read_text(encoding="utf-8") for path in sys.argv[1:3])
    printed = [line for line in output.split("\n") if line.strip()]
    for block in blocks(document):
        if not stands_in(block, printed):
            lines = "\n    ".join(block)
            sys.stderr.write(f"{sys.argv[1]} prints what its commands do not:\n    {lines}\n")
            sys.stderr.write("they print:\n" + "".join(f"    {line}\n" for line in printed))
            raise SystemExit(1)


if __name__ == "__main__":
    main()
