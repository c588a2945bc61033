"""Checks the GitHub workflows against the repository: what they call is there.

    python3 scripts/workflows.py

Every script of ours that a step runs exists and can be executed; the compiler of the tests' second run is the manifest's rust-version. Where actionlint is
installed, it is asked as well; the workflow `ci` always asks it.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

SCRIPT = re.compile(r"(?<![\w/.])((?:scripts|bench|\.ci)/[\w.-]+)")
MSRV = re.compile(r'^rust-version = "(.+)"$', re.MULTILINE)
TOOLCHAINS = re.compile(r"^\s*toolchain: \[(.+)\]$", re.MULTILINE)


def wrong_with(workflow: Path) -> list[str]:
    """What a workflow names and the repository has not."""
    text = workflow.read_text()
    wrong = []
    for name in sorted(set(SCRIPT.findall(text))):
        if not Path(name).exists():
            wrong.append(f"{workflow}: there is no {name}")
        elif Path(name).suffix == "" and not os.access(name, os.X_OK):
            wrong.append(f"{workflow}: {name} cannot be executed")
    return wrong


def main() -> None:
    workflows = sorted(Path(".github/workflows").glob("*.yml"))
    wrong = [line for workflow in workflows for line in wrong_with(workflow)]
    oldest = MSRV.findall(Path("Cargo.toml").read_text())
    tried = TOOLCHAINS.findall(Path(".github/workflows/ci.yml").read_text())
    if not any(f'"{version}"' in row for version in oldest for row in tried):
        wrong.append(f"ci.yml does not test with Rust {', '.join(oldest)}, the rust-version")
    if shutil.which("actionlint"):
        lint = subprocess.run(["actionlint", "-no-color"], capture_output=True, text=True, check=False)
        wrong += lint.stdout.splitlines()
    print("\n".join(wrong) or f"{len(workflows)} workflows: what they call is there")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
