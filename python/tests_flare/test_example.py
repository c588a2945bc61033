"""The example, and what its README says came of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import fedstay
import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "flare-hello"


@pytest.mark.parametrize(("rule", "left"), [("fedavg", 3), ("retain", 0)])
def test_the_example_does_what_its_readme_says(rule, left, tmp_path):
    out = tmp_path / rule
    command = [sys.executable, "job.py", "--rule", rule, "--out", str(out)]
    command += ["--workspace", str(tmp_path / "workspace")]
    done = subprocess.run(
        command, cwd=EXAMPLE, env=dict(os.environ), capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = fedstay.read(out)
    assert len(found.left) == left
    worst = done.stdout.splitlines()[-1].removeprefix("worst hospital: ")
    row = next(
        line for line in (EXAMPLE / "README.md").read_text().splitlines() if f"`{rule}`" in line
    )
    assert worst.removesuffix(" accuracy") in row, (worst, row)
    assert f"{found.stop} after {found.summary['rounds']} rounds" in row
