"""Interrupted writes of the Rust releases, and the commits that recover them.

A release recovers a mutation or a load by what its tables show: if all of them moved from
`expected_version` to `post_commit_pin`, it is rolled forward, and otherwise rolled back. Either way
the recovery makes a commit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from omnigraph.errors import InvalidInputError
from omnigraph.manifest.layout import RECOVERY
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.tables import TableKey
from omnigraph.originals.history import OriginalPin, Pins, unproven_error
from omnigraph.storage.objects import Objects
from omnigraph.storage.originals import OriginalTables

_VERSION: Final = 2
_KINDS: Final = frozenset({"Mutation", "Load"})
"""Writers that move each table once; how other writers are recovered, no sample shows."""


@dataclass(frozen=True, slots=True)
class InterruptedWrite:
    """One sidecar: by table, the version it was planned on, and the one that it makes."""

    operation_id: str
    branch: BranchName
    moves: Mapping[TableKey, tuple[OriginalPin, OriginalPin]]


def read_sidecars(objects: Objects, uri: str) -> Iterator[InterruptedWrite]:
    """The interrupted writes, oldest first."""
    for path in sorted(objects.list(RECOVERY)):
        stored = objects.read(path)
        if stored is None or not path.endswith(".json"):
            continue
        try:
            record = json.loads(stored.data)
            version, kind = record["schema_version"], record["writer_kind"]
            if version != _VERSION or kind not in _KINDS:
                message = (
                    f"{uri} has an interrupted {kind} with a sidecar of version {version}, {path}, "
                    "which cannot be recovered here"
                )
                raise unproven_error(message)
            yield InterruptedWrite(
                str(record["operation_id"]),
                BranchName.parse(record["branch"] or MAIN),
                dict(map(_move, record["tables"])),
            )
        except (ValueError, KeyError, TypeError, InvalidInputError) as cause:
            message = f"the sidecar {path} of {uri} cannot be read"
            raise unproven_error(message) from cause


def _move(table: Mapping[str, Any]) -> tuple[TableKey, tuple[OriginalPin, OriginalPin]]:
    key = TableKey.parse(table["table_key"])
    # The path is absolute, and of the place where the graph was written.
    location = "/".join(table["table_path"].rstrip("/").split("/")[-2:])
    after = OriginalPin(location, table.get("table_branch"), int(table["post_commit_pin"]))
    return key, (replace(after, version=int(table["expected_version"])), after)


@dataclass(frozen=True, slots=True)
class RecoveredWrite:
    """What a recovery makes of an interrupted write."""

    pins: Pins
    is_rolled_back: bool


def classify(write: InterruptedWrite, pins: Pins, tables: OriginalTables) -> RecoveredWrite | None:
    """What the release makes of a write on a branch that shows `pins`; None if it was published."""
    if all(_is_published(pins.get(key), after) for key, (_, after) in write.moves.items()):
        return None
    moved = []
    for key, (before, after) in write.moves.items():
        head = before.version
        if after.ref is None or after.ref in tables.refs(after.location):
            head = tables.head_version(after.location, ref=after.ref)
        pin = pins.get(key)
        is_expected = pin is not None and pin.version == before.version
        if not is_expected or head not in (before.version, after.version):
            message = (
                f"{key} on branch {write.branch} is at version {head}, and the interrupted write "
                f"{write.operation_id} expected {before.version}"
            )
            raise unproven_error(message)
        moved.append(head == after.version)
    if not all(moved):
        return RecoveredWrite(pins, is_rolled_back=True)
    ahead = {key: after for key, (_, after) in write.moves.items()}
    return RecoveredWrite({**pins, **ahead}, is_rolled_back=False)


def _is_published(pin: OriginalPin | None, after: OriginalPin) -> bool:
    return pin is not None and (pin.ref, pin.version) == (after.ref, after.version)
