"""Checks every relative link of the documents: the file is there, and so is the heading.

    python3 scripts/links.py            all documents
    python3 scripts/links.py docs/a.md  some of them
"""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"!?\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")
HEADING = re.compile(r"^#{1,6} +(.*?)\s*$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def slug(heading: str) -> str:
    """The name under which a heading is linked to."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
    return re.sub(r"\s", "-", re.sub(r"[^\w\- ]", "", text))


def broken(document: Path) -> list[str]:
    """What is wrong with a document's links."""
    text = FENCE.sub("", document.read_text())
    wrong = []
    for target in LINK.findall(text):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (document.parent / path).resolve() if path else document.resolve()
        if not file.exists():
            wrong.append(f"{document}: {target}: there is no such file")
        elif anchor and file.suffix == ".md":
            headings = HEADING.findall(FENCE.sub("", file.read_text()))
            if anchor not in map(slug, headings):
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
