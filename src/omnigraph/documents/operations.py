"""Operations: the methods of a graph that a server offers to clients in Python, by name.

`branches.create` is `graph.branches.create`. Arguments, results and errors are those of the method.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class CallKind(StrEnum):
    """What a call does, and so what may be done when its answer is lost."""

    READ = "read"
    """It changes nothing, and is repeated."""
    KEYED = "keyed"
    """It has a key, by which repetitions land once."""
    WRITE = "write"
    """Whether it landed is not known without its answer."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One method.

    Attributes:
        name: As it is written after `graph.`.
        texts: The arguments that are texts of a language: sent as `Source`, never as names of
            files, which would be those of the server.
    """

    name: str
    kind: CallKind
    texts: tuple[str, ...] = ()


_READS: Final = (
    "at",
    "algorithms.components",
    "algorithms.degrees",
    "algorithms.label_propagation",
    "algorithms.pagerank",
    "algorithms.shortest_paths",
    "algorithms.triangles",
    "baseline",
    "branches.list",
    "changes",
    "check",
    "commits.changes",
    "commits.every",
    "commits.let_go",
    "commits.list",
    "commits.show",
    "diff",
    "embeddings.status",
    "entity",
    "indexes.list",
    "point",
    "proposals.diff",
    "proposals.list",
    "proposals.preview",
    "proposals.show",
    "queries.list",
    "queries.show",
    "recoveries.list",
    "recoveries.pending",
    "require_writable",
    "schema.history",
    "schema.show",
    "settings.get",
    "settings.list",
    "snapshot",
    "streams.list",
    "tags.list",
    "tags.show",
)
_WRITES: Final = (
    "branches.create",
    "branches.delete",
    "cleanup",
    "embeddings.run",
    "ensure_indices",
    "merge",
    "optimize",
    "proposals.approve",
    "proposals.close",
    "proposals.comment",
    "proposals.create",
    "proposals.merge",
    "proposals.withdraw_approval",
    "queries.delete",
    "refresh",
    "repair",
    "settings.set",
    "settings.unset",
    "streams.forget",
    "tags.create",
    "tags.delete",
)
_OF_TEXTS: Final = (
    Operation("query", CallKind.READ, ("source",)),
    Operation("explain", CallKind.READ, ("source",)),
    Operation("mutate", CallKind.KEYED, ("source",)),
    Operation("queries.run", CallKind.KEYED),
    Operation("queries.put", CallKind.WRITE, ("source",)),
    Operation("schema.plan", CallKind.READ, ("schema",)),
    Operation("schema.apply", CallKind.WRITE, ("schema",)),
    Operation("schema.purge", CallKind.WRITE, ("schema",)),
    Operation("schema.diff", CallKind.READ, ("before", "after")),
)

OPERATIONS: Final[Mapping[str, Operation]] = {
    operation.name: operation
    for operation in (
        *(Operation(name, CallKind.READ) for name in _READS),
        *(Operation(name, CallKind.WRITE) for name in _WRITES),
        *_OF_TEXTS,
    )
}
"""By name. Loads and exports have bodies of any size, and routes of their own."""

_OWN: Final = frozenset({"actor", "progress", "cancel"})


def own_arguments(operation: Operation) -> frozenset[str]:
    """Arguments that are not sent: the server knows the actor, the others stay with the caller."""
    return _OWN | {"key"} if operation.kind is CallKind.KEYED else _OWN
