"""Checks every relative link of the documents: the file is there, and so is the heading.

    python3 scripts/links.py                     all documents
    python3 scripts/links.py docs/a.md           some of them
    python3 scripts/links.py target/book/*.html  pages of the book
"""

import re
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path
from urllib.parse import unquote

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?)\s*$", re.MULTILINE)
HREF = re.compile(r'\s(?:href|src)="([^"]*)"')
ID = re.compile(r'\sid="([^"]*)"')
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The name under which a heading is linked to."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", text))


def links(document: Path) -> list[str]:
    """Where a document leads, in and out of the repository."""
    if document.suffix == ".html":
        return [unescape(target) for target in HREF.findall(document.read_text())]
    return LINK.findall(FENCE.sub("", document.read_text()))


@cache
def anchors(file: Path) -> set[str]:
    """What can be linked to inside a file."""
    if file.suffix == ".html":
        return set(ID.findall(file.read_text()))
    return set(map(slug, HEADING.findall(FENCE.sub("", file.read_text()))))


def broken(document: Path) -> list[str]:
    """What is wrong with a document's links."""
    wrong = []
    for target in links(document):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = unquote(target).partition("#")
        file = (document.parent / path).resolve() if path else document.resolve()
        if not file.exists():
            wrong.append(f"{document}: {target}: there is no such file")
        elif anchor and file.suffix in (".md", ".html") and anchor not in anchors(file):
            wrong.append(f"{document}: {target}: there is no such heading")
    return wrong


def main() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True,
        text=True,
        check=True,
    )
    documents = [Path(name) for name in sys.argv[1:] or listed.stdout.split("\n") if name]
    wrong = [line for document in documents for line in broken(document)]
    print("\n".join(wrong) or f"{len(documents)} documents, every link leads somewhere")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
