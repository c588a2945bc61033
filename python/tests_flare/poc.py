"""FLARE's proof of concept: a server and sites that were provisioned, with certificates, on this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

BIN = Path(sys.executable).parent


class Poc:
    """Prepares and starts everything in a folder, and stops what it started."""

    def __init__(self, folder: Path, sites: list[str]) -> None:
        self.folder = folder
        (folder / "home").mkdir(parents=True)
        self.environment = {
            **os.environ,
            # FLARE keeps a registry of startup kits in the home directory.
            "HOME": str(folder / "home"),
            "NVFLARE_POC_WORKSPACE": str(folder / "poc"),
            "PATH": f"{BIN}:{os.environ['PATH']}",
        }
        self.nvflare("poc", "prepare", "-c", *sites)
        self.nvflare("poc", "start", "--timeout", "120", seconds=180)

    def nvflare(self, *arguments: str, seconds: float = 120) -> str:
        """Runs FLARE's command; what it printed."""
        log = self.folder / "commands.log"
        with log.open("a") as lines:
            lines.write(f"$ nvflare {' '.join(arguments)}\n")
            lines.flush()
            since = log.stat().st_size
            # Into a file: the services that it starts inherit what it writes to.
            done = subprocess.run(
                [str(BIN / "nvflare"), *arguments], env=self.environment, cwd=self.folder,
                stdin=subprocess.DEVNULL, stdout=lines, stderr=lines, timeout=seconds,
            )  # fmt: skip
        said = log.read_text()[since:]
        assert done.returncode == 0, said[-4000:]
        return said

    def submit(self, job: Path) -> None:
        """Submits an exported job, as an administrator does."""
        self.nvflare("job", "submit", "-j", str(job))

    def wait_for(self, path: Path, seconds: float) -> None:
        """Waits for a file of the run."""
        until = time.monotonic() + seconds
        while not path.exists():
            assert time.monotonic() < until, f"no {path} after {seconds} s: {self.logs()}"
            time.sleep(0.5)

    def logs(self) -> str:
        """The ends of everybody's logs."""
        found = sorted(self.folder.rglob("log.txt"))
        return "\n".join(f"== {path}\n{path.read_text()[-2000:]}" for path in found)

    def close(self) -> None:
        """Stops the services."""
        self.nvflare("poc", "stop", seconds=180)
