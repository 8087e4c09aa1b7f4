"""Forks: where the refs of a table started, and so which version two of them have in common.

A ref starts at a version of another ref and counts on from its number. Pins say by which forks
their refs came about. With each ref that earlier releases created, Lance stores the whole chain of
forks that leads to it from main (docs/substrate.md, Row versions).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from typing import Final, TypeAlias
from urllib.parse import quote

from omnigraph.model.tables import Fork
from omnigraph.storage.objects import Objects

KNOWN_FORKS_MAX: Final = 4096
"""Refs of tables of which a graph handle remembers where they started."""


REFS_FOLDER: Final = "_refs/branches"
REF_SUFFIX: Final = ".json"


def registration_path(location: str, ref: str) -> str:
    """The file in which Lance registers a ref of a table; Omnigraph does not have it do so."""
    return f"{location}/{REFS_FOLDER}/{quote(ref, safe='')}{REF_SUFFIX}"


Chain: TypeAlias = tuple[tuple[int, str], ...]
"""The forks from main to a ref, each with the version it started at, and the identity of a ref."""


class Forks:
    """The forks of every table below one root, each read once; threads may share it."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._chains: dict[tuple[str, str], Chain] = {}
        self._known: dict[tuple[str, str], Fork] = {}
        self._lock = threading.Lock()

    def learn(self, location: str, forks: Iterable[Fork]) -> None:
        """Remember where refs of a table started."""
        with self._lock:
            for fork in forks:
                self._known.pop((location, fork.ref), None)
                while len(self._known) >= KNOWN_FORKS_MAX:
                    del self._known[next(iter(self._known))]
                self._known[location, fork.ref] = fork

    def chain(self, location: str, ref: str | None) -> Chain | None:
        """The forks that lead to a ref; None if that is unknown, or it is not there any more.

        A published ref is never created again, so what was read once stays true.
        """
        if ref is None:
            return ()
        with self._lock:
            fork = self._known.get((location, ref))
            known = self._chains.get((location, ref))
        if fork is not None:
            earlier = self.chain(location, fork.source)
            return None if earlier is None else (*earlier, (fork.version, ref))
        if known is not None:
            return known
        path = registration_path(location, ref)
        stored = self._objects.read(path)
        if stored is None:
            return None
        forks = json.loads(stored.data)["identifier"]["version_mapping"]
        chain = tuple((int(version), str(identity)) for version, identity in forks)
        with self._lock:
            while len(self._chains) >= KNOWN_FORKS_MAX:
                del self._chains[next(iter(self._chains))]
            self._chains[location, ref] = chain
        return chain


def common_version(*, before: tuple[int, Chain], after: tuple[int, Chain]) -> int:
    """The newest version that two versions of a table have in common.

    Each is given by its number and the chain of its ref. A ref has the versions of the ref that it
    started from, up to that one.

    >>> main, draft, other = (), ((3, "d"),), ((5, "o"),)
    >>> common_version(before=(7, main), after=(9, main))
    7
    >>> common_version(before=(7, main), after=(9, draft))
    3
    >>> common_version(before=(9, other), after=(9, draft))
    3
    """
    (old, old_chain), (new, new_chain) = before, after
    shared = 0
    for one, other in zip(old_chain, new_chain, strict=False):
        if one != other:
            break
        shared += 1
    forks = [chain[shared][0] for chain in (old_chain, new_chain) if len(chain) > shared]
    return min(old, new, *forks)
