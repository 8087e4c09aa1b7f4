"""Declarations to a catalog: validates, expands interfaces, and sorts into canonical order."""

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
    Index,
    Interface,
    NodeType,
    Property,
    Value,
)
from omnigraph.schema.embeds import manage
from omnigraph.schema.findings import Finding, InvalidSchemaError
from omnigraph.schema.indexes import DEFAULT_OPTIONS
from omnigraph.schema.interfaces import expand
from omnigraph.schema.rules import findings_in
from omnigraph.schema.values import Misfit, fit

_DeclarationT = TypeVar("_DeclarationT", Interface, NodeType, EdgeType)


def catalog_of(*declarations: Declaration) -> Catalog:
    """The catalog of these declarations, whatever their order."""
    catalog, findings = resolve(declarations)
    if catalog is None:
        raise InvalidSchemaError(
            finding for finding in findings if finding.code.severity is Severity.ERROR
        )
    return catalog


def resolve(
    declarations: Sequence[Declaration], *, manages_vectors: bool = False
) -> tuple[Catalog | None, tuple[Finding, ...]]:
    """The catalog, or None if there are errors; and all findings, warnings included.

    Checking ends at `ERRORS_MAX` errors.

    Args:
        manages_vectors: Whether embedded vectors get their companions, as in a text. A stored
            schema has them, or is of an earlier release.
    """
    findings: list[Finding] = []
    errors = 0
    for finding in findings_in(declarations):
        findings.append(finding)
        errors += finding.code.severity is Severity.ERROR
        if errors == ERRORS_MAX:
            break
    if errors:
        return None, tuple(findings)
    if manages_vectors:
        declarations = list(map(manage, declarations))
    interfaces = {
        declaration.name: declaration
        for declaration in declarations
        if isinstance(declaration, Interface)
    }
    nodes = [
        expand(declaration, interfaces)
        for declaration in declarations
        if isinstance(declaration, NodeType)
    ]
    edges = [declaration for declaration in declarations if isinstance(declaration, EdgeType)]
    return Catalog(
        node_types=_sort_by_name([_canonicalize_rules(_canonicalize(node)) for node in nodes]),
        edge_types=_sort_by_name([_canonicalize_rules(_canonicalize(edge)) for edge in edges]),
        interfaces=_sort_by_name([_canonicalize(interface) for interface in interfaces.values()]),
    ), tuple(findings)


def _sort_by_name(declarations: list[_DeclarationT]) -> tuple[_DeclarationT, ...]:
    return tuple(sorted(declarations, key=attrgetter("name")))


def _canonicalize(declaration: _DeclarationT) -> _DeclarationT:
    """Fit every value, and sort by column whatever has no order of its own."""
    column = {name: place for place, name in enumerate(_columns(declaration))}
    uniques = [tuple(sorted(members, key=column.__getitem__)) for members in declaration.uniques]
    return replace(
        declaration,
        properties=tuple(_fit_property(property_) for property_ in declaration.properties),
        uniques=tuple(sorted(uniques, key=lambda members: [column[name] for name in members])),
        indexes=tuple(
            sorted(
                map(_without_defaults, declaration.indexes),
                key=lambda index: column[index.property],
            )
        ),
        annotations=_sorted_annotations(declaration.annotations),
    )


_SchemaTypeT = TypeVar("_SchemaTypeT", NodeType, EdgeType)


def _canonicalize_rules(type_: _SchemaTypeT) -> _SchemaTypeT:
    """The same for ranges, checks and lengths, which interfaces do not have."""
    column = {name: place for place, name in enumerate(_columns(type_))}
    types = {property_.name: property_ for property_ in type_.properties}
    ranges = [
        replace(
            range_,
            low=_fit_value(types[range_.property], range_.low),
            high=_fit_value(types[range_.property], range_.high),
        )
        for range_ in type_.ranges
    ]
    checks = sorted(type_.checks, key=lambda check: (column[check.property], check.pattern))
    ordered = replace(
        type_,
        ranges=tuple(sorted(ranges, key=lambda range_: column[range_.property])),
        checks=tuple(checks),
        lengths=tuple(sorted(type_.lengths, key=lambda length: column[length.property])),
    )
    if isinstance(ordered, NodeType):
        return replace(ordered, implements=tuple(sorted(ordered.implements)))
    return ordered


def _without_defaults(index: Index) -> Index:
    """Options that are those of `@index` alone are none: equal schemas are equal catalogs."""
    return replace(index, options=None) if index.options in DEFAULT_OPTIONS else index


def _columns(declaration: Declaration) -> list[str]:
    return [*ENDPOINTS, *(property_.name for property_ in declaration.properties)]


def _fit_property(property_: Property) -> Property:
    return replace(
        property_,
        default=_fit_value(property_, property_.default),
        annotations=_sorted_annotations(property_.annotations),
    )


def _fit_value(property_: Property, value: Value | None) -> Value | None:
    if value is None:
        return None
    fitted = fit(property_.type, value)
    assert not isinstance(fitted, Misfit), "findings_in refuses what does not fit"
    return fitted


def _sorted_annotations(annotations: tuple[Annotation, ...]) -> tuple[Annotation, ...]:
    return tuple(sorted(annotations, key=attrgetter("name")))
