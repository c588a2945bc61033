"""What differs between two folders of kept files: numbers bit by bit, texts letter by letter."""

import csv
import io
import json
import re
import struct
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

#: May differ by design, as `file:path.to.key`: the version that wrote a file, and hashes that depend on it.
MAY_DIFFER = ("*:version", "*:*.version", "*.csv:*.key", "*.csv:*.setting", "*.json:*.setting")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
ABSENT = object()


@dataclass
class Differences:
    """Collects what differs, what is new, and which drawings changed."""

    may_differ: tuple[str, ...] = MAY_DIFFER
    #: The only keys that may be new, or None if any may be.
    may_be_new: tuple[str, ...] | None = None
    found: list[str] = field(default_factory=list)
    new: Counter = field(default_factory=Counter)
    drawings: list[str] = field(default_factory=list)
    compared: int = 0

    def folders(self, old: Path, new: Path) -> None:
        """Compares every kept file of one folder with the other's."""
        before, after = files(old), files(new)
        for name in sorted(before.keys() | after.keys()):
            if name not in after:
                self.found.append(f"{name}: missing")
            elif name not in before:
                self.is_new(name, "the file")
            elif name.endswith(".svg"):
                if before[name].read_bytes() != after[name].read_bytes():
                    self.drawings.append(name)
            else:
                self.values(name, "", read(before[name]), read(after[name]))

    def is_new(self, name: str, key: str) -> None:
        if self.may_be_new is not None and key not in self.may_be_new:
            self.found.append(f"{name}: {key} is new, and not among the keys that may be")
        self.new[f"{name}: {key}"] += 1

    def values(self, name: str, path: str, old: object, new: object) -> None:
        """Compares two values, and what is in them."""
        if any(fnmatchcase(f"{name}:{path}", pattern) for pattern in self.may_differ):
            return
        old, new = opened(old), opened(new)
        if isinstance(old, dict) and isinstance(new, dict):
            for key in old:
                self.values(name, joined(path, key), old[key], new.get(key, ABSENT))
            for key in new.keys() - old.keys():
                self.is_new(name, str(key))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            for place, (one, other) in enumerate(zip(old, new, strict=True)):
                self.values(name, joined(path, place), one, other)
        else:
            self.compared += 1
            if not same(old, new):
                self.found.append(f"{name}: {path or 'everything'}: {shown(old)} → {shown(new)}")


def opened(value: object) -> object:
    """Parses a text that is itself JSON, as the state of a server is."""
    if isinstance(value, str) and value.startswith("{"):
        try:
            return json.loads(value)
        except ValueError:
            pass
    return value


def same(old: object, new: object) -> bool:
    """Whether two values are the same bits: 0.0 is not −0.0, and 1 is not 1.0."""
    if type(old) is not type(new):
        return False
    if isinstance(old, float):
        return struct.pack("<d", old) == struct.pack("<d", new)
    return old == new


def shown(value: object) -> str:
    if value is ABSENT:
        return "missing"
    if isinstance(value, list):
        return f"{len(value)} entries"
    text = repr(value)
    return text if len(text) <= 70 else f"{text[:67]}…"


def joined(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)


def files(folder: Path) -> dict[str, Path]:
    """The files of a folder and of the folders in it, by their relative path."""
    there = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path for path in there}


def read(path: Path) -> object:
    """A file as a value whose numbers can be told apart."""
    match path.suffix:
        case ".json":
            return json.loads(path.read_text())
        case ".jsonl":
            return [json.loads(line) for line in path.read_text().splitlines()]
        case ".toml":
            return tomllib.loads(path.read_text())
        case ".csv":
            return list(csv.DictReader(io.StringIO(path.read_text())))
        case ".numbers":
            return NUMBER.findall(path.read_text())
        case ".safetensors":
            return tensors(path.read_bytes())
        case _:
            return path.read_bytes().hex()


def tensors(content: bytes) -> dict:
    """The tensors of a safetensors file, every number as its bytes; their order does not count."""
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    for name, tensor in header.items():
        if name != "__metadata__":
            start, end = tensor.pop("data_offsets")
            size = int(tensor["dtype"].strip("BFIU")) // 8
            tensor["bytes"] = content[8 + length :][start:end].hex(" ", -size).split()
    return header
