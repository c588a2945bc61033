"""A case's own folder: runs the program there, and keeps the files whose numbers count."""

import json
import os
import shutil
import subprocess
from pathlib import Path

#: What is kept of a run's folder. A checkpoint is not: when it was due is a matter of time.
OF_A_RUN = (
    "summary.json",
    "rounds.jsonl",
    "gram.jsonl",
    "config.toml",
    "model.safetensors",
    "run.svg",
)


class Failed(Exception):
    """The program did not do what a case asked for, whatever its numbers."""


class Scratch:
    """Where one case works (`folder`), and where it puts what is kept (`kept`)."""

    def __init__(self, binary: Path, folder: Path, kept: Path, threads: int, by_option: bool):
        self.binary, self.folder, self.kept = binary, folder, kept
        self.threads, self.by_option = threads, by_option
        self.commands: list[list[str]] = []
        folder.mkdir(parents=True)
        kept.mkdir(parents=True)

    def environment(self) -> dict[str, str]:
        """The number of threads comes from `--threads` or the environment, never from the machine."""
        mine = {"RAYON_NUM_THREADS": str(1 if self.by_option else self.threads)}
        return {**os.environ, **mine}

    def arguments(self, command: str, *arguments: str) -> list[str]:
        threads = ["--threads", str(self.threads)] if self.by_option else []
        takes = ("run", "compare", "tournament", "story", "figure", "sweep")
        self.commands.append([command, *arguments])
        return [str(self.binary), command, *arguments, *(threads if command in takes else [])]

    def start(self, command: str, *arguments: str) -> subprocess.Popen:
        """Starts the program and does not wait for it."""
        return subprocess.Popen(
            self.arguments(command, *arguments),
            cwd=self.folder,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def fedstay(self, command: str, *arguments: str, told: str = "", plain: bool = False) -> str:
        """Runs the program to its end, and returns what it printed; `plain` is without `--threads`."""
        words = self.arguments(command, *arguments)
        if plain:
            words = [str(self.binary), command, *arguments]
        done = subprocess.run(
            words,
            cwd=self.folder,
            env=self.environment(),
            input=told,
            capture_output=True,
            text=True,
            timeout=300,
        )
        if done.returncode != 0:
            raise Failed(f"{command} {' '.join(arguments)}: {done.stderr.strip()[-600:]}")
        return done.stdout

    def write(self, name: str, content: str | bytes) -> str:
        """Writes a file for the program to read; returns its name."""
        content = content.encode() if isinstance(content, str) else content
        (self.folder / name).write_bytes(content)
        return name

    def keep_text(self, name: str, text: str) -> None:
        """Keeps what was printed; `name` ends in .json, .jsonl, .csv or .numbers (see differences.py)."""
        (self.kept / name).write_text(text)

    def keep_run(self, out: str, under: str = "") -> None:
        """Keeps a run's folder, in a folder `under` of its own where a case has several."""
        into = self.kept / under
        into.mkdir(exist_ok=True)
        there = [name for name in OF_A_RUN if (self.folder / out / name).exists()]
        if "summary.json" not in there:
            raise Failed(f"{out} has no summary.json")
        for name in there:
            shutil.copy(self.folder / out / name, into / name)

    def run(self, experiment: str, settings: dict, *options: str, out: str = "out") -> None:
        """`fedstay run` with these settings, kept."""
        self.fedstay("run", experiment, *sets(settings), *options, "--out", out)
        self.keep_run(out)


def folder_of(name: str) -> str:
    """A case's name as that of its folder."""
    return "".join(letter if letter.isalnum() or letter in "-+." else "_" for letter in name)


def sets(settings: dict) -> list[str]:
    """Settings as `--set` options. Strings go as they are: names, and TOML that is not JSON."""
    words = []
    for key, value in settings.items():
        words += ["--set", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    return words
