"""A schema as a picture: node types as boxes, edge types as pills between them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from omnigraph.drawings import svg
from omnigraph.drawings.layers import Place, Size, place_boxes, ranks
from omnigraph.schema.catalog import (
    UNLIMITED,
    Catalog,
    EdgeType,
    NodeType,
    Property,
    SchemaType,
)

_LINE: Final = 17
_PADDING: Final = 10
_HEADER: Final = 26
_MARGIN: Final = 24
_ACROSS: Final = 56
_BETWEEN: Final = 26
_ARROW: Final = 7
_TEXT_MAX: Final = 48
"""Characters of one line in a box."""


@dataclass(frozen=True, slots=True)
class _Link:
    """A line between two boxes through the layers between them; the arrow is at its target."""

    stops: tuple[str, ...]
    has_arrow: bool
    colour: str


def schema_svg(catalog: Catalog, *, title: str, styled: bool = True) -> str:
    """The picture of a schema, with a style of its own unless a page has one for it."""
    types = {type_.name: type_ for type_ in catalog.types}
    rank = ranks(
        [node_type.name for node_type in catalog.node_types],
        [(edge_type.source, edge_type.target) for edge_type in catalog.edge_types],
    )
    layers: dict[int, list[str]] = defaultdict(list)
    for node in catalog.node_types:
        layers[2 * rank[node.name]].append(node.name)
    sizes = {type_.name: _size(type_) for type_ in catalog.types}
    links: list[_Link] = []
    for number, edge in enumerate(catalog.edge_types):
        source, target = 2 * rank[edge.source], 2 * rank[edge.target]
        layer = min(source, target) + 1
        layers[layer].append(edge.name)
        colour = svg.COLOURS[number % len(svg.COLOURS)]
        room = _Room(layers, sizes, edge.name)
        source_stops = room.stops((edge.source, edge.name), source, layer)
        target_stops = room.stops((edge.name, edge.target), layer, target)
        links += [_Link(source_stops, has_arrow=False, colour=colour)]
        links += [_Link(target_stops, has_arrow=True, colour=colour)]
    sorted_layers = [layers[number] for number in sorted(layers)]
    pairs = [pair for link in links for pair in zip(link.stops, link.stops[1:], strict=False)]
    places = place_boxes(sorted_layers, sizes, pairs, across=_ACROSS, between=_BETWEEN)
    elements = [*_lines(links, places)]
    for name, place in places.items():
        if name in types:
            elements += _box(types[name], place, _colour_of(name, catalog))
    width = max((place.x + place.width for place in places.values()), default=0.0)
    height = max((place.y + place.height for place in places.values()), default=0.0)
    group = f'<g transform="translate({_MARGIN} {_MARGIN})">'
    picture = [group, *elements, "</g>"]
    size = (width + 2 * _MARGIN, height + 2 * _MARGIN)
    return svg.document(*size, picture, title=title, styled=styled)


def lines_of(type_: SchemaType) -> list[str]:
    """The lines of a type's box below its title."""
    lines = [f"implements {interface}" for interface in getattr(type_, "implements", ())]
    return [_shorten(line) for line in [*lines, *(_property(type_, p) for p in type_.properties)]]


def title_of(type_: SchemaType) -> str:
    """The title of a type's box.

    >>> from omnigraph.schema.catalog import Cardinality
    >>> title_of(EdgeType("Knows", "Person", "Person", Cardinality(0, 3)))
    'Knows 0..3'
    """
    if isinstance(type_, NodeType) or type_.cardinality == UNLIMITED:
        return type_.name
    high = "" if type_.cardinality.maximum is None else type_.cardinality.maximum
    return f"{type_.name} {type_.cardinality.minimum}..{high}"


def _property(owner: SchemaType, property_: Property) -> str:
    indexed = [index.property for index in owner.indexes]
    marks = [
        mark
        for mark, members in (("@key", owner.key), ("@index", indexed))
        if property_.name in members
    ]
    if any(property_.name in members for members in owner.uniques):
        marks.insert(0, "@unique")
    return " ".join(
        [f"{property_.name}: {property_.type}{'?' if property_.nullable else ''}", *marks]
    )


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"


def _size(type_: SchemaType) -> Size:
    lines = lines_of(type_)
    widest = max(map(svg.text_width, [title_of(type_), *lines]))
    body = len(lines) * _LINE + _PADDING if lines else 0
    return Size(widest + 2 * _PADDING, _HEADER + body)


@dataclass(frozen=True, slots=True)
class _Room:
    """Reserves places for the lines of one edge type in the layers that they cross."""

    layers: dict[int, list[str]]
    sizes: dict[str, Size]
    name: str

    def stops(self, ends: tuple[str, str], start: int, end: int) -> tuple[str, ...]:
        """The boxes of a line, and between them the places reserved for it."""
        step = 1 if end > start else -1
        crossed = [f"{self.name}:{layer}" for layer in range(start + step, end, step)]
        for layer, stop in zip(range(start + step, end, step), crossed, strict=True):
            self.layers[layer].append(stop)
            self.sizes[stop] = Size(0, 0)
        return (ends[0], *crossed, ends[1])


def _lines(links: Sequence[_Link], places: dict[str, Place]) -> Iterator[str]:
    ports = _ports(links, places)
    for number, link in enumerate(links):
        parts: list[str] = []
        end = (0.0, 0.0)
        side = 1
        for at, (one, other) in enumerate(zip(link.stops, link.stops[1:], strict=False)):
            a, b = places[one], places[other]
            # The side of each box that faces the other.
            side = 1 if b.x >= a.x + a.width else -1
            x1 = a.x + a.width if side > 0 else a.x
            x2 = b.x if side > 0 else b.x + b.width
            y1, y2 = ports[number, at, 0], ports[number, at, 1]
            half = (x1 + x2) / 2
            if not parts:
                parts.append(f"M{x1:.1f} {y1:.1f}")
            else:
                parts.append(f"L{x1:.1f} {y1:.1f}")
            parts.append(f"C{half:.1f} {y1:.1f} {half:.1f} {y2:.1f} {x2:.1f} {y2:.1f}")
            end = x2, y2
        yield svg.element("path", d=" ".join(parts), class_="line", stroke=link.colour)
        if link.has_arrow:
            x, y = end
            back = x - side * _ARROW
            points = f"{x:.1f},{y:.1f} {back:.1f},{y - 4:.1f} {back:.1f},{y + 4:.1f}"
            yield svg.element("polygon", points=points, fill=link.colour)


def _ports(links: Sequence[_Link], places: dict[str, Place]) -> dict[tuple[int, int, int], float]:
    """The heights at which each segment of a line meets its boxes: no two at one point."""
    sides: dict[tuple[str, bool], list[tuple[float, tuple[int, int, int]]]] = defaultdict(list)
    for number, link in enumerate(links):
        for at, (one, other) in enumerate(zip(link.stops, link.stops[1:], strict=False)):
            a, b = places[one], places[other]
            to_the_right = b.x >= a.x + a.width
            sides[one, to_the_right].append((b.centre, (number, at, 0)))
            sides[other, not to_the_right].append((a.centre, (number, at, 1)))
    heights = {}
    for (name, _), ends in sides.items():
        place = places[name]
        for position, (_, end) in enumerate(sorted(ends), start=1):
            heights[end] = place.y + place.height * position / (len(ends) + 1)
    return heights


def _box(type_: SchemaType, place: Place, colour: str) -> Iterator[str]:
    is_edge = isinstance(type_, EdgeType)
    x, y, width, height = place.x, place.y, place.width, place.height
    radius = 13 if is_edge else 4
    yield svg.element(
        "rect", x=x, y=y, width=width, height=height, rx=radius, class_="box", stroke=colour
    )
    if not is_edge:
        yield svg.element("rect", x=x, y=y, width=width, height=_HEADER, rx=radius, fill=colour)
    style = "strong" if is_edge else "strong light"
    middle = x + width / 2
    title = title_of(type_)
    yield svg.element("text", title, x=middle, y=y + 17, text_anchor="middle", class_=style)
    for number, line in enumerate(lines_of(type_), start=1):
        at = y + _HEADER + number * _LINE - 3
        yield svg.element("text", line, x=x + _PADDING, y=at, class_="dim" if is_edge else "")


def _colour_of(name: str, catalog: Catalog) -> str:
    for number, edge in enumerate(catalog.edge_types):
        if edge.name == name:
            return svg.COLOURS[number % len(svg.COLOURS)]
    return "#24292f"
