"""Requests: the algorithms with their parameters, and the columns of their results."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias, assert_never

import pyarrow as pa

from omnigraph.choices import EdgeDirection
from omnigraph.errors import InvalidParameterError

ALGORITHM_ROUNDS_MAX: Final = 10_000
"""Rounds that a caller may ask for."""


@dataclass(frozen=True, slots=True)
class Degrees:
    """How many edges lead to each node, and from it; a loop does both."""


@dataclass(frozen=True, slots=True)
class PageRank:
    """The share of time that a random walk spends at each node.

    Attributes:
        damping: How likely the walk follows an edge; else it jumps to any node.
        tolerance: It ends when ranks change by less than that, added up over all nodes.
        rounds_max: It ends after so many rounds at the latest.
        undirected: Whether edges are followed both ways.
    """

    damping: float = 0.85
    tolerance: float = 1e-6
    rounds_max: int = 100
    undirected: bool = False

    def __post_init__(self) -> None:
        _require(0 <= self.damping < 1, "damping", self.damping, "from 0 to below 1")
        positive = math.isfinite(self.tolerance) and self.tolerance > 0
        _require(positive, "tolerance", self.tolerance, "above 0")
        _require_rounds(self.rounds_max)


@dataclass(frozen=True, slots=True)
class Components:
    """Which nodes are connected, by edges in whichever direction."""


@dataclass(frozen=True, slots=True)
class LabelPropagation:
    """Communities: in each round every node joins the one that most of its neighbours are in."""

    rounds_max: int = 10

    def __post_init__(self) -> None:
        _require_rounds(self.rounds_max)


@dataclass(frozen=True, slots=True)
class ShortestPaths:
    """The fewest edges from any of some nodes to each node.

    Attributes:
        sources: By the name of their type, the ids of those nodes.
        hops_max: Nodes that are further away count as not reached; None for no limit.
    """

    sources: Mapping[str, tuple[str, ...]]
    direction: EdgeDirection = EdgeDirection.OUT
    hops_max: int | None = None

    def __post_init__(self) -> None:
        given = any(self.sources.values())
        _require(given, "sources", dict(self.sources), "at least one node")
        if self.hops_max is not None:
            _require(self.hops_max >= 0, "max_hops", self.hops_max, "0 or more")


def parse_nodes(texts: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Ids by type, of texts such as `Person/ada`."""
    ids: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, slash, id_ = text.partition("/")
        if not (name and slash and id_):
            message = f"{text[:100]!r} does not name a node"
            hint = "write its type and its id, as in Person/ada"
            raise InvalidParameterError(message, hint=hint, name="sources")
        ids[name] = (*ids.get(name, ()), id_)
    return ids


@dataclass(frozen=True, slots=True)
class Triangles:
    """How many pairs of neighbours of each node are neighbours themselves."""


Algorithm: TypeAlias = (
    "Degrees | PageRank | Components | LabelPropagation | ShortestPaths | Triangles"
)

_KEYS: Final = {"type": pa.string(), "id": pa.string()}


def columns_of(algorithm: Algorithm) -> pa.Schema:
    """The columns of a result: the node, and what was computed of it."""
    match algorithm:
        case Degrees():
            names = ("in_degree", "out_degree", "degree")
            return pa.schema({**_KEYS, **dict.fromkeys(names, pa.int64())})
        case PageRank():
            return pa.schema({**_KEYS, "rank": pa.float64()})
        case Components():
            return pa.schema({**_KEYS, "component": pa.string()})
        case LabelPropagation():
            return pa.schema({**_KEYS, "community": pa.string()})
        case ShortestPaths():
            return pa.schema({**_KEYS, "distance": pa.int64(), "source": pa.string()})
        case Triangles():
            return pa.schema({**_KEYS, "triangles": pa.int64()})
        case _:
            assert_never(algorithm)


def order_of(algorithm: Algorithm) -> tuple[tuple[str, bool], ...]:
    """How a result is listed for people: its columns, each with whether the largest are first."""
    match algorithm:
        case Degrees():
            own = (("degree", True),)
        case PageRank():
            own = (("rank", True),)
        case Components():
            own = (("component", False),)
        case LabelPropagation():
            own = (("community", False),)
        case ShortestPaths():
            own = (("distance", False),)
        case Triangles():
            own = (("triangles", True),)
        case _:
            assert_never(algorithm)
    return (*own, ("type", False), ("id", False))


def _require_rounds(value: int) -> None:
    is_valid = 1 <= value <= ALGORITHM_ROUNDS_MAX
    _require(is_valid, "rounds", value, f"from 1 to {ALGORITHM_ROUNDS_MAX:,}")


def _require(is_valid: bool, name: str, value: object, rule: str) -> None:  # noqa: FBT001
    if not is_valid:
        message = f"{name} must be {rule}, not {value!r}"
        raise InvalidParameterError(message, name=name)
