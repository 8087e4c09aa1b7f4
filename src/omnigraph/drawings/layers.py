"""Boxes in layers: which goes where, so that lines between them run from left to right.

The usual four steps, each simple and all deterministic: cycles are broken, boxes are ranked by the
longest way to them, layers are ordered by where their neighbours stand, and then moved beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_SWEEPS: Final = 6
"""Times that layers are ordered, and moved, by their neighbours; more would change little."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much room a box needs."""

    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where a box stands: its upper left corner, and its size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def centre(self) -> float:
        """How far down its middle is."""
        return self.y + self.height / 2


def ranks(names: Sequence[str], links: Iterable[tuple[str, str]]) -> dict[str, int]:
    """How far to the right each name belongs: to the right of what leads to it, cycles apart.

    >>> ranks(["a", "b", "c"], [("a", "b"), ("b", "c"), ("c", "a"), ("b", "b")])
    {'a': 0, 'b': 1, 'c': 2}
    """
    following: dict[str, list[str]] = {name: [] for name in names}
    for source, target in links:
        if source != target and target not in following[source]:
            following[source].append(target)
    forward = _acyclic(names, following)
    found = dict.fromkeys(names, 0)
    # As many rounds as names: the longest way has no more steps.
    for _ in names:
        for source in names:
            for target in forward[source]:
                found[target] = max(found[target], found[source] + 1)
    return found


def _acyclic(names: Sequence[str], following: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The links, with those turned round that lead back to where a walk came from."""
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


def placed(
    layers: Sequence[Sequence[str]],
    sizes: Mapping[str, Size],
    links: Sequence[tuple[str, str]],
    *,
    across: float,
    between: float,
) -> dict[str, Place]:
    """Where each box stands.

    Args:
        links: Between names of neighbouring layers.
        across: The room between layers.
        between: The room between the boxes of a layer.
    """
    beside: dict[str, list[str]] = {name: [] for layer in layers for name in layer}
    for one, other in links:
        beside[one].append(other)
        beside[other].append(one)
    ordered = [list(layer) for layer in layers]
    for sweep in range(_SWEEPS):
        for layer in ordered if sweep % 2 == 0 else reversed(ordered):
            _order(layer, ordered, beside)
    tops = {
        name: top
        for layer in ordered
        for name, top in zip(layer, _stacked(layer, sizes, between), strict=True)
    }
    for sweep in range(_SWEEPS):
        for layer in ordered if sweep % 2 == 0 else reversed(ordered):
            _move(layer, tops, sizes, beside, between)
    least = min(tops.values(), default=0.0)
    places: dict[str, Place] = {}
    left = 0.0
    for layer in ordered:
        widest = max((sizes[name].width for name in layer), default=0.0)
        for name in layer:
            size = sizes[name]
            x = left + (widest - size.width) / 2
            places[name] = Place(x, tops[name] - least, size.width, size.height)
        left += widest + across
    return places


def _order(
    layer: list[str], layers: Sequence[Sequence[str]], beside: Mapping[str, Sequence[str]]
) -> None:
    """Put the boxes of a layer in the order of where their neighbours stand."""
    positions = {name: place / len(each) for each in layers for place, name in enumerate(each)}
    layer.sort(key=lambda name: _mean([positions[each] for each in beside[name]], positions[name]))


def _move(
    layer: Sequence[str],
    tops: dict[str, float],
    sizes: Mapping[str, Size],
    beside: Mapping[str, Sequence[str]],
    between: float,
) -> None:
    """Move the boxes of a layer towards their neighbours, as far as they have room."""

    def centre(name: str) -> float:
        return tops[name] + sizes[name].height / 2

    wanted = [
        _mean([centre(each) for each in beside[name]], centre(name)) - sizes[name].height / 2
        for name in layer
    ]
    found: list[float] = []
    free = float("-inf")
    for name, top in zip(layer, wanted, strict=True):
        found.append(max(top, free))
        free = found[-1] + sizes[name].height + between
    # Those that had to make way all went down: half of it is given back.
    shift = _mean([want - got for want, got in zip(wanted, found, strict=True)], 0.0)
    for name, top in zip(layer, found, strict=True):
        tops[name] = top + shift


def _stacked(layer: Sequence[str], sizes: Mapping[str, Size], between: float) -> list[float]:
    found, top = [], 0.0
    for name in layer:
        found.append(top)
        top += sizes[name].height + between
    return found


def _mean(values: Sequence[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
