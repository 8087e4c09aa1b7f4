"""Memory of a match: what it holds at once, against the most that its query may hold.

Arrays of node numbers count, also those that were there before; columns do not, which a graph
handle keeps for the next query, as in SQL. What is counted is about what numpy allocates; a match
that may hold too much is left to SQL, and DuckDB decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from omnigraph.engine.local.matching.sources import UnmatchableError
from omnigraph.engine.local.topology.topology import Topology


@dataclass(frozen=True, slots=True)
class Memory:
    """What a match may hold.

    Attributes:
        bytes_max: None if there is no limit, and then nothing is counted.
        topologies: Those that it uses, by identity.
        beside: What it holds beside them, of matches that this one is a part of.
    """

    bytes_max: int | None = None
    topologies: dict[int, Topology] = field(default_factory=dict)
    beside: int = 0

    @property
    def is_limited(self) -> bool:
        """Whether there is a limit."""
        return self.bytes_max is not None

    def use(self, topology: Topology) -> None:
        """Count the arrays of a topology from now on."""
        self.topologies[id(topology)] = topology
        self.require(0)

    def require(self, byte_count: int) -> None:
        """Refuse to hold so many bytes in addition to the arrays."""
        if not self.has_room(byte_count):
            message = "the match may not fit into the memory of the query"
            raise UnmatchableError(message)

    def has_room(self, byte_count: int) -> bool:
        """Whether so many bytes fit beside the arrays."""
        left = self.left()
        return left is None or byte_count <= left

    def left(self) -> int | None:
        """What the match may hold beside the arrays; None if there is no limit."""
        if self.bytes_max is None:
            return None
        arrays = sum(topology.nbytes for topology in self.topologies.values())
        return self.bytes_max - arrays - self.beside

    def within(self, byte_count: int) -> Memory:
        """The same memory for a match inside of one that holds so many bytes."""
        return Memory(self.bytes_max, self.topologies, self.beside + byte_count)


def count_bytes(*parts: np.ndarray | Mapping[str, np.ndarray] | None) -> int:
    """The memory of arrays."""
    total = 0
    for part in parts:
        if isinstance(part, Mapping):
            total += sum(array.nbytes for array in part.values())
        elif part is not None:
            total += part.nbytes
    return total
