"""Records docs/session.md and docs/data/session.cast: what a newcomer sees in a terminal of 80 columns.

    cargo build --workspace --bin fedstay && python3 scripts/session.py
    python3 scripts/session.py --check      writes nothing: does the document show what the commands print?

The cast (asciicast, version 2) can be played by `asciinema play docs/data/session.cast`.
"""

import fcntl
import itertools
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

import printed

COLUMNS, LINES = 80, 40
COMMANDS = [
    "fedstay compare --rules fedavg,ada-gd+halve,retain",
    "fedstay run --set rule.kind=fedavg",
    "fedstay run --set rule.kind=fedavgg",
    "fedstay run",
    "fedstay ls",
]
ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def shown(command: str, folder: str) -> str:
    """What a command writes to a terminal, colours included."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "NO_COLOR")}
    child = subprocess.Popen(
        command.split(), cwd=folder, stdout=theirs, stderr=theirs, env=environment | {"TERM": "xterm"}
    )
    os.close(theirs)
    text = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # the terminal's last program has ended
            break
        if not part:
            break
        text += part
    child.wait()
    return text.decode()


def plain(text: str) -> str:
    """The lines that remain, without colours and without progress bars."""
    lines = ESCAPE.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join(line.rsplit("\r", 1)[-1].rstrip() for line in lines)


def check(written: str, recorded: str) -> None:
    """Ends with an error at the first line that is not what was recorded, up to last digits."""
    mine, theirs = ([line for line in text.split("\n") if line.strip()] for text in (written, recorded))
    for line, now in itertools.zip_longest(mine, theirs, fillvalue=""):
        if not printed.same(line, now):
            raise SystemExit(f"docs/session.md shows what its commands do not:\n    {line}\nthey print:\n    {now}")


def main() -> None:
    root = Path(__file__).parent.parent
    if "FEDSTAY_ON_PATH" not in os.environ:
        os.environ["PATH"] = f"{(root / 'target/debug').resolve()}:{os.environ['PATH']}"
    cast = [{"version": 2, "width": COLUMNS, "height": LINES, "title": "fedstay"}]
    page = [
        "# A session in the terminal\n",
        "A terminal of 80 columns; verdicts have colours there. Recorded by `scripts/session.py`, which also",
        "writes it as a cast: `asciinema play docs/data/session.cast`.\n",
    ]
    clock = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for command in COMMANDS:
            text = shown(command, folder)
            page += ["```text", f"$ {command}", plain(text).rstrip(), "```\n"]
            for letter in f"$ {command}\r\n":
                clock += 0.03
                cast.append([round(clock, 2), "o", letter])
            clock += 0.5
            cast.append([round(clock, 2), "o", text])
            clock += 3.0
    if sys.argv[1:] == ["--check"]:
        check((root / "docs/session.md").read_text(encoding="utf-8"), "\n".join(page))
        return
    (root / "docs/session.md").write_text("\n".join(page))
    lines = "\n".join(json.dumps(event, ensure_ascii=False) for event in cast)
    (root / "docs/data/session.cast").write_text(lines + "\n")


if __name__ == "__main__":
    main()
