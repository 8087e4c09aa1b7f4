"""The entry point: `.pg` text to a catalog, with all diagnostics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from omnigraph.errors import ErrorCode
from omnigraph.lang.diagnostics import Diagnostic, DiagnosticsError
from omnigraph.lang.source import Source
from omnigraph.model.arguments import require_text
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.declare import DeclaredSchema, declare
from omnigraph.schema.findings import Finding, SchemaCode
from omnigraph.schema.resolve import resolve
from omnigraph.schema.syntax import Syntax, read

_ABOUT_VALUES: Final = frozenset(
    {
        SchemaCode.DEFAULT,
        SchemaCode.RANGE_MEMBER,
        SchemaCode.RANGE_BOUNDS,
        SchemaCode.LENGTH_MEMBER,
        SchemaCode.EMBED,
        SchemaCode.INDEX_OPTIONS,
    }
)
_ABOUT_OTHERS: Final = frozenset({SchemaCode.UNKNOWN_NODE_TYPE, SchemaCode.UNKNOWN_INTERFACE})


@dataclass(frozen=True, slots=True)
class SchemaReading:
    """The result of reading a schema: a catalog unless there are errors, and all diagnostics."""

    source: Source
    catalog: Catalog | None
    diagnostics: tuple[Diagnostic, ...]


def parse_schema(text: str, name: str = "schema") -> Catalog:
    """The catalog of a schema text.

    >>> parse_schema("node Person { name: String @key }").node_type("Person").key
    ('name',)

    Args:
        name: What to call the text in diagnostics.

    Raises:
        DiagnosticsError: the text is refused; the error has all its diagnostics.
        InvalidParameterError: it is not a string.
    """
    reading = read_schema(require_text(text, "text"), name)
    if reading.catalog is None:
        raise DiagnosticsError(reading.diagnostics, reading.source, code=ErrorCode.INVALID_SCHEMA)
    return reading.catalog


def read_schema(text: str, name: str = "schema") -> SchemaReading:
    """The catalog of a schema text and all diagnostics, in the order of the text.

    Never raises, whatever the text. An error in one declaration hides none in another, except
    where it could be the cause of the other.
    """
    source = Source(name, text)
    syntax = read(source)
    schema = declare(syntax.declarations)
    catalog, findings = resolve(schema.declarations, manages_vectors=True)
    diagnostics = [*syntax.diagnostics, *schema.diagnostics]
    if diagnostics:
        catalog = None
    for finding in findings:
        if not _is_doubtful(finding, source, syntax, schema):
            span = schema.span(finding.path)
            severity = finding.code.severity
            diagnostics.append(
                Diagnostic(finding.code, span, finding.message, finding.hint, severity)
            )
    diagnostics.sort(key=lambda diagnostic: (diagnostic.span, diagnostic.code))
    return SchemaReading(source, catalog, tuple(diagnostics))


def _is_doubtful(finding: Finding, source: Source, syntax: Syntax, schema: DeclaredSchema) -> bool:
    """Whether a finding may only follow from something that could not be read."""
    if finding.code in _ABOUT_OTHERS:
        return source.at(schema.span(finding.path)) in syntax.lost_names
    if finding.code is SchemaCode.UNKNOWN_PROPERTY:
        return bool(syntax.lost_names)
    if finding.code is SchemaCode.INTERFACE_MISMATCH:
        return bool(schema.unresolved)
    return finding.code in _ABOUT_VALUES and finding.path[0] in schema.unresolved
