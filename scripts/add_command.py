"""Puts the command `fedstay` into a wheel, so that `pip install` brings it.

    python scripts/add_command.py WHEEL BINARY

maturin builds either a module or a program, not both. A wheel may hold files for the folder of scripts, which
pip makes executable wherever it installs it; here the program is added as one, and RECORD lists it. Done
twice, it replaces the program. The wheel is replaced only once the new one is complete.
"""

import base64
import csv
import hashlib
import io
import os
import sys
import zipfile
from pathlib import Path


def digest(content: bytes) -> str:
    """As RECORD has it."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def add_command(wheel: Path, binary: Path) -> None:
    name, version = wheel.name.split("-")[:2]
    inside = f"{name}-{version}.data/scripts/{binary.name}"
    listed = f"{name}-{version}.dist-info/RECORD"
    program = binary.read_bytes()
    fresh = wheel.with_suffix(".tmp")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(fresh, "w", zipfile.ZIP_DEFLATED) as new:
        record = io.StringIO(old.read(listed).decode(), newline="")
        rows = [row for row in csv.reader(record) if row and row[0] != inside]
        for entry in old.infolist():
            if entry.filename not in (listed, inside):
                new.writestr(entry, old.read(entry))
        entry = zipfile.ZipInfo(inside)
        entry.external_attr = 0o100755 << 16
        new.writestr(entry, program, zipfile.ZIP_DEFLATED)
        rows.insert(-1, [inside, digest(program), str(len(program))])
        text = io.StringIO(newline="")
        csv.writer(text, lineterminator="\n").writerows(rows)
        new.writestr(listed, text.getvalue())
    os.replace(fresh, wheel)


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel, binary = map(Path, sys.argv[1:])
    for path in (wheel, binary):
        if not path.is_file():
            sys.exit(f"there is no {path}")
    add_command(wheel, binary)
    print(f"{wheel}: with the command {binary.name}")


if __name__ == "__main__":
    main()
