"""Declarations to a catalog: checked, expanded, and put in canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TypeVar

from omnigraph.lang.diagnostics import ERRORS_MAX, Severity
from omnigraph.schema.catalog import (
    ENDPOINTS,
    Annotation,
    Catalog,
    Declaration,
    EdgeType,
    Interface,
    NodeType,
    Property,
    Value,
)
from omnigraph.schema.findings import Finding, InvalidSchemaError
from omnigraph.schema.interfaces import expand
from omnigraph.schema.rules import findings_in
from omnigraph.schema.values import Misfit, fit

_Declared = TypeVar("_Declared", Interface, NodeType, EdgeType)


def catalog_of(*declarations: Declaration) -> Catalog:
    """The catalog that these declarations mean, in whatever order they come.

    Raises:
        InvalidSchemaError: they break rules; the error has every finding.
    """
    catalog, findings = resolve(declarations)
    if catalog is None:
        raise InvalidSchemaError(each for each in findings if each.code.severity is Severity.ERROR)
    return catalog


def resolve(declarations: Sequence[Declaration]) -> tuple[Catalog | None, tuple[Finding, ...]]:
    """The catalog, or None if there are errors; and what was found, warnings included.

    Looking ends at `ERRORS_MAX` errors.
    """
    findings: list[Finding] = []
    errors = 0
    for each in findings_in(declarations):
        findings.append(each)
        errors += each.code.severity is Severity.ERROR
        if errors == ERRORS_MAX:
            break
    if errors:
        return None, tuple(findings)
    interfaces = {each.name: each for each in declarations if isinstance(each, Interface)}
    nodes = [expand(each, interfaces) for each in declarations if isinstance(each, NodeType)]
    edges = [each for each in declarations if isinstance(each, EdgeType)]
    return Catalog(
        node_types=_in_order([_ruled(_plain(each)) for each in nodes]),
        edge_types=_in_order([_ruled(_plain(each)) for each in edges]),
        interfaces=_in_order([_plain(each) for each in interfaces.values()]),
    ), tuple(findings)


def _in_order(declared: list[_Declared]) -> tuple[_Declared, ...]:
    return tuple(sorted(declared, key=attrgetter("name")))


def _plain(each: _Declared) -> _Declared:
    """Fit every value, and order what has no order of its own by column."""
    column = {name: place for place, name in enumerate(_columns(each))}
    uniques = [tuple(sorted(members, key=column.__getitem__)) for members in each.uniques]
    return replace(
        each,
        properties=tuple(_fitted(property_) for property_ in each.properties),
        uniques=tuple(sorted(uniques, key=lambda members: [column[name] for name in members])),
        indexes=tuple(sorted(each.indexes, key=column.__getitem__)),
        annotations=_sorted_annotations(each.annotations),
    )


_Ruled = TypeVar("_Ruled", NodeType, EdgeType)


def _ruled(each: _Ruled) -> _Ruled:
    """The same for ranges and checks, which interfaces do not have."""
    column = {name: place for place, name in enumerate(_columns(each))}
    types = {property_.name: property_ for property_ in each.properties}
    ranges = [
        replace(
            range_,
            low=_value(types[range_.property], range_.low),
            high=_value(types[range_.property], range_.high),
        )
        for range_ in each.ranges
    ]
    checks = sorted(each.checks, key=lambda check: (column[check.property], check.pattern))
    ordered = replace(
        each,
        ranges=tuple(sorted(ranges, key=lambda range_: column[range_.property])),
        checks=tuple(checks),
    )
    if isinstance(ordered, NodeType):
        return replace(ordered, implements=tuple(sorted(ordered.implements)))
    return ordered


def _columns(each: Declaration) -> list[str]:
    return [*ENDPOINTS, *(property_.name for property_ in each.properties)]


def _fitted(property_: Property) -> Property:
    return replace(
        property_,
        default=_value(property_, property_.default),
        annotations=_sorted_annotations(property_.annotations),
    )


def _value(property_: Property, value: Value | None) -> Value | None:
    if value is None:
        return None
    fitted = fit(property_.type, value)
    assert not isinstance(fitted, Misfit), "findings_in refuses what does not fit"
    return fitted


def _sorted_annotations(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(sorted(annotations, key=attrgetter("name")))
