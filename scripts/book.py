"""Gathers the documents for the book into one folder, with links that lead somewhere there.

The documents are written for the repository: those in docs/ link to `../DESIGN.md`, those at its top to
`docs/keys.md`. In the book they stand side by side; links to code become plain text.
"""

import re
import shutil
import sys
from pathlib import Path

TOP = ["COMPARE.md", "DESIGN.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "RELEASE.md"]
#: Two documents are called README, a name that mdBook changes without changing links to it.
FRONT, INDEX = "front.md", "index.md"
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^()\s]+)\)")


def moved(text: str, folder: Path, names: dict[Path, str]) -> str:
    """The text with links as they are in the book."""

    def link(match: re.Match[str]) -> str:
        mark, label, target = match.groups()
        if re.match(r"[a-z]+:|#", target):
            return match.group()
        path, _, anchor = target.partition("#")
        file = (folder / path).resolve()
        if file in names:
            return f"{mark}[{label}]({names[file]}{'#' + anchor if anchor else ''})"
        return label if not mark else match.group()

    # A picture inside a link is met first.
    return LINK.sub(link, text)


def unlisted(root: Path) -> list[str]:
    """The documents that the table of contents forgot: nobody would find them in the book."""
    listed = set(re.findall(r"\(([^()]+\.md)\)", (root / "docs/SUMMARY.md").read_text()))
    return sorted({file.name for file in (root / "docs").glob("*.md")} - listed - {"SUMMARY.md"})


def main() -> None:
    root, out = Path.cwd(), Path(sys.argv[1])
    if forgotten := unlisted(root):
        sys.exit(f"docs/SUMMARY.md does not list {', '.join(forgotten)}")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    sources = {root / "README.md": FRONT}
    sources |= {root / name: name for name in TOP}
    sources |= {file: file.name for file in (root / "docs").glob("*.md")}
    sources[root / "docs/README.md"] = INDEX
    names = dict(sources)
    for part in ("img", "data"):
        shutil.copytree(root / "docs" / part, out / part)
        names |= {file: f"{part}/{file.name}" for file in (root / "docs" / part).iterdir()}
    names = {file.resolve(): name for file, name in names.items()}
    for file, name in sources.items():
        (out / name).write_text(moved(file.read_text(), file.parent, names))
    with (out / "SUMMARY.md").open("a") as summary:
        summary.write("\n# The project\n\n")
        for name, title in [(FRONT, "What it is"), *((name, name[:-3].title()) for name in TOP)]:
            summary.write(f"- [{title}]({name})\n")


if __name__ == "__main__":
    main()
