"""Places boxes in layers, so that lines between them run from left to right.

The usual four steps, each simple and all deterministic: break cycles, rank boxes by the longest
path to them, sort each layer by the positions of neighbours, and move boxes towards neighbours.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SWEEPS: Final = 6
"""How often layers are sorted, and moved, by their neighbours; more would change little."""


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a box."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a box: its upper left corner, and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        """The vertical position of its middle."""
        return self.y + self.height / 2


def ranks(names: Sequence[str], links: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The rank of each name, from the left: greater than those that lead to it, except in cycles.

    >>> ranks(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")])
    {'a': 0, 'b': 1, 'c': 2}
    """
    following: dict[str, list[str]] = {name: [] for name in names}
    for source, target in links:
        if source != target and target not in following[source]:
            following[source].append(target)
    forward = _acyclic(names, following)
    rank_by_name = dict.fromkeys(names, 0)
    # As many rounds as names, because the longest path has no more steps.
    for _ in names:
        for source in names:
            for target in forward[source]:
                rank_by_name[target] = max(rank_by_name[target], rank_by_name[source] + 1)
    return rank_by_name


def _acyclic(names: Sequence[str], following: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The links, with those reversed that lead back to the path of a depth-first walk."""
    forward: dict[str, list[str]] = {name: [] for name in names}
    done: set[str] = set()
    for start in names:
        path: list[tuple[str, int]] = [(start, 0)] if start not in done else []
        on_path = {start}
        while path:
            name, at = path.pop()
            if at == len(following[name]):
                done.add(name)
                on_path.discard(name)
                continue
            path.append((name, at + 1))
            target = following[name][at]
            if target in on_path:
                forward[target].append(name)
            else:
                forward[name].append(target)
                if target not in done:
                    path.append((target, 0))
                    on_path.add(target)
    return forward


def place_boxes(
    layers: Sequence[Sequence[str]],
    sizes: Mapping[str, Size],
    links: Sequence[tuple[str, str]],
    *,
    across: float,
    between: float,
) -> dict[str, Place]:
    """The place of each box.

    Args:
        links: Between names of neighbouring layers.
        across: The distance between layers.
        between: The distance between the boxes of a layer.
    """
    neighbours: dict[str, list[str]] = {name: [] for layer in layers for name in layer}
    for one, other in links:
        neighbours[one].append(other)
        neighbours[other].append(one)
    sorted_layers = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        for layer in sorted_layers if sweep % 2 == 0 else reversed(sorted_layers):
            _order(layer, sorted_layers, neighbours)
    tops = {
        name: top
        for layer in sorted_layers
        for name, top in zip(layer, _stack(layer, sizes, between), strict=True)
    }
    for sweep in range(_SWEEPS):
        for layer in sorted_layers if sweep % 2 == 0 else reversed(sorted_layers):
            _move(layer, tops, sizes, neighbours, between)
    least = min(tops.values(), default=0.0)
    places: dict[str, Place] = {}
    left = 0.0
    for layer in sorted_layers:
        widest = max((sizes[name].width for name in layer), default=0.0)
        for name in layer:
            size = sizes[name]
            x = left + (widest - size.width) / 2
            places[name] = Place(x, tops[name] - least, size.width, size.height)
        left += widest + across
    return places


def _order(
    layer: list[str], layers: Sequence[Sequence[str]], neighbours: Mapping[str, Sequence[str]]
) -> None:
    """Sort the boxes of a layer by the mean position of their neighbours."""
    positions = {name: place / len(names) for names in layers for place, name in enumerate(names)}
    layer.sort(
        key=lambda name: _mean(
            [positions[neighbour] for neighbour in neighbours[name]], positions[name]
        )
    )


def _move(
    layer: Sequence[str],
    tops: dict[str, float],
    sizes: Mapping[str, Size],
    neighbours: Mapping[str, Sequence[str]],
    between: float,
) -> None:
    """Move the boxes of a layer towards their neighbours, as far as there is space."""

    def centre(name: str) -> float:
        return tops[name] + sizes[name].height / 2

    wanted_tops = [
        _mean([centre(neighbour) for neighbour in neighbours[name]], centre(name))
        - sizes[name].height / 2
        for name in layer
    ]
    new_tops: list[float] = []
    free = float("-inf")
    for name, top in zip(layer, wanted_tops, strict=True):
        new_tops.append(max(top, free))
        free = new_tops[-1] + sizes[name].height + between
    # Boxes that had to give way all moved down, so the layer moves back up by the mean.
    shift = _mean([want - got for want, got in zip(wanted_tops, new_tops, strict=True)], 0.0)
    for name, top in zip(layer, new_tops, strict=True):
        tops[name] = top + shift


def _stack(layer: Sequence[str], sizes: Mapping[str, Size], between: float) -> list[float]:
    tops, top = [], 0.0
    for name in layer:
        tops.append(top)
        top += sizes[name].height + between
    return tops


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
