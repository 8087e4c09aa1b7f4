"""Callers: what a process has that a copy of the starter cannot be given, and must have as well."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_RIGHTS: Final = (
    "Uid",
    "Gid",
    "Groups",
    "CapInh",
    "CapPrm",
    "CapEff",
    "CapBnd",
    "CapAmb",
    "NoNewPrivs",
    "Seccomp",
    "Seccomp_filters",
)
_PLACES: Final = ("Cpus_allowed", "Mems_allowed")

_AT_START: Final = (
    b"PYTHON",
    b"LC_",
    b"LANG",
    b"LD_",
    b"GLIBC_",
    b"MALLOC_",
    b"MIMALLOC_",
    b"ARROW_",
    b"LANCE_",
    b"RUST_",
    b"NPY_",
)
"""How variables begin that take effect while a process starts, or while it imports libraries."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A process that wants a command to run as if it ran it itself.

    Attributes:
        umask: The permissions that its new files lack.
        ignores: Its signals that have no effect, and `blocks` those that wait.
        traits: Everything that must be alike, by what to call it when it is not.
    """

    umask: int
    ignores: frozenset[int]
    blocks: frozenset[int]
    traits: Mapping[str, object]


def look_at(pid: int) -> Caller:
    """The facts of a process, as the kernel reports them.

    Raises:
        OSError: it has ended, or its facts are not for this process.
    """
    home = Path(f"/proc/{pid}")
    status = _fields((home / "status").read_text())
    traits: dict[str, object] = {
        "rights": [status.get(name) for name in _RIGHTS],
        "processors": [status.get(name) for name in _PLACES],
        "limits": (home / "limits").read_text(),
        "priority": os.getpriority(os.PRIO_PROCESS, pid),
        "root directory": _same_file(home / "root"),
        "namespaces": {
            space.name: str(space.readlink())
            for space in (home / "ns").iterdir()
            if not space.name.endswith("_for_children")
        },
    }
    return Caller(
        umask=int(status["Umask"], 8),
        ignores=_signals(status["SigIgn"]),
        blocks=_signals(status["SigBlk"]),
        traits=traits,
    )


def start_variables(environment: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
    """The variables that only a new process can obey.

    >>> start_variables({b"PYTHONUTF8": b"1", b"LANG": b"C", b"OMNIGRAPH_STORE": b"g", b"TZ": b"U"})
    {b'PYTHONUTF8': b'1', b'LANG': b'C'}
    """
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


def _fields(text: str) -> dict[str, str]:
    pairs = (line.partition(":") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _signals(mask: str) -> frozenset[int]:
    """The signals in a mask of the kernel.

    >>> sorted(_signals("0000000001001002"))
    [2, 13, 25]
    """
    bits = int(mask, 16)
    return frozenset(number for number in range(1, 32) if bits >> (number - 1) & 1)


def _same_file(path: Path) -> tuple[int, int]:
    facts = path.stat()
    return facts.st_dev, facts.st_ino
