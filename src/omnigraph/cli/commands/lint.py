"""`omnigraph lint`: check schemas and queries without running them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.exits import Exit
from omnigraph.cli.profiles import find_profile
from omnigraph.cli.texts import read_text

if TYPE_CHECKING:
    from omnigraph.lang.diagnostics import Diagnostic
    from omnigraph.lang.source import Source
    from omnigraph.model.former_names import FormerNames
    from omnigraph.query import ir
    from omnigraph.schema.catalog import Catalog

_SCHEMA: Final = ".pg"
_QUERIES: Final = ".gq"


@dataclass(frozen=True, slots=True)
class LintResult:
    """What one file was found to have.

    Attributes:
        queries: The compiled queries of a `.gq` file; None if it has errors, or is a schema.
        checked: False if only the syntax was checked, since there was no schema without errors.
    """

    source: Source
    diagnostics: tuple[Diagnostic, ...]
    queries: tuple[ir.Query, ...] | None = None
    checked: bool = True


def lint(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help=".pg and .gq files.")],
    *,
    schema: Annotated[
        str | None,
        typer.Option("--schema", metavar="FILE", help="The schema to check the queries against."),
    ] = None,
    store: options.Store = None,
    branch: options.AtBranch = None,
    json: options.Json = False,
) -> None:
    """Check schemas and queries; show each mistake where it is.

    Queries are checked against --schema, or else against the one schema among the files, or else
    against the schema of --store.
    """
    _refuse_other_files(files)
    schemas = {path: _lint_schema(path) for path in dict.fromkeys(files) if _is_schema(path)}
    catalog, former = None, None
    if any(not _is_schema(path) for path in files):
        if schema is None and len(schemas) == 1:
            schema = next(iter(schemas))
        if schema is not None:
            # A schema that is given for the queries is checked like any other.
            schemas = {schema: _lint_schema(schema), **schemas}
            catalog = schemas[schema][1]
        else:
            catalog, former = _stored_catalog(store, branch)
    results = [result for result, _ in schemas.values()]
    queries = [path for path in dict.fromkeys(files) if not _is_schema(path)]
    results += [_lint_queries(path, catalog, former) for path in queries]
    errors, warnings = _counts(results)
    if json:
        facts = [_file_facts(result) for result in results]
        render.show_json({"errors": errors, "warnings": warnings, "files": facts})
    else:
        _show(results, errors=errors, warnings=warnings)
    if errors:
        raise typer.Exit(Exit.INVALID)


def _is_schema(path: str) -> bool:
    return PurePath(path).suffix == _SCHEMA


def _refuse_other_files(files: Iterable[str]) -> None:
    for path in files:
        if PurePath(path).suffix not in (_SCHEMA, _QUERIES):
            message = f"{path} is neither a {_SCHEMA} nor a {_QUERIES} file"
            raise typer.BadParameter(message, param_hint="FILE")


def _stored_catalog(store: str | None, branch: str | None) -> tuple[Catalog, FormerNames]:
    from omnigraph.model.former_names import FormerNames

    if store is None and find_profile(store) is None:
        message = "queries are checked against a schema: give --schema FILE or --store URI"
        raise typer.BadParameter(message, param_hint="--schema")
    handle = graphs.open_graph(store, read_only=True)
    snapshot = handle.snapshot(branch=branch)
    former = FormerNames.of(snapshot.pins.values(), snapshot.tombstones)
    return handle.schema.show(commit=snapshot.head.commit_id).catalog, former


def _lint_schema(path: str) -> tuple[LintResult, Catalog | None]:
    from omnigraph.schema.parser import read_schema

    reading = read_schema(read_text(path), path)
    return LintResult(reading.source, reading.diagnostics), reading.catalog


def _lint_queries(path: str, catalog: Catalog | None, former: FormerNames | None) -> LintResult:
    from omnigraph.lang.source import Source
    from omnigraph.query.compile import read_queries
    from omnigraph.query.parser import read

    text = read_text(path)
    if catalog is None:
        source = Source(path, text)
        return LintResult(source, read(source).diagnostics, checked=False)
    reading = read_queries(text, catalog, path, former)
    return LintResult(reading.source, reading.diagnostics, reading.queries)


def _counts(results: Iterable[LintResult]) -> tuple[int, int]:
    from omnigraph.lang.diagnostics import errors_in

    diagnostics = [diagnostic for result in results for diagnostic in result.diagnostics]
    errors = len(errors_in(diagnostics))
    return errors, len(diagnostics) - errors


def _show(results: Sequence[LintResult], *, errors: int, warnings: int) -> None:
    for result in results:
        for diagnostic in result.diagnostics:
            render.show_text(f"{diagnostic.render(result.source)}\n\n")
    for result in results:
        if not result.checked:
            name = result.source.name
            render.say(f"{name}: only the syntax was checked, since the schema has errors")
    render.say(
        f"{_plural(errors, 'error')} and {_plural(warnings, 'warning')} "
        f"in {_plural(len(results), 'file')}"
    )


def _plural(count: int, thing: str) -> str:
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def _file_facts(result: LintResult) -> dict[str, object]:
    facts: dict[str, object] = {
        "file": result.source.name,
        "diagnostics": [
            _diagnostic_facts(diagnostic, result.source) for diagnostic in result.diagnostics
        ],
    }
    if not _is_schema(result.source.name):
        facts["checked"] = result.checked
        facts["queries"] = result.queries and [_query_facts(query) for query in result.queries]
    return facts


def _diagnostic_facts(diagnostic: Diagnostic, source: Source) -> dict[str, object]:
    line, column = source.position(diagnostic.span.start)
    end_line, end_column = source.position(diagnostic.span.end)
    return {
        "code": diagnostic.code,
        "severity": diagnostic.severity,
        "line": line,
        "column": column,
        "end_line": end_line,
        "end_column": end_column,
        "message": diagnostic.message,
        "hint": diagnostic.hint,
    }


def _query_facts(query: ir.Query) -> dict[str, object]:
    from omnigraph.query.ir import MutationQuery, ReadQuery

    columns = query.columns if isinstance(query, ReadQuery) else ()
    writes = query.writes if isinstance(query, MutationQuery) else ()
    return {
        "name": query.name,
        "kind": "read" if isinstance(query, ReadQuery) else "mutation",
        "description": query.description,
        "instruction": query.instruction,
        "parameters": [_value_facts(parameter.name, parameter) for parameter in query.parameters],
        "columns": [_value_facts(column.name, column.expression) for column in columns],
        "reads": sorted(map(str, query.reads)),
        "writes": sorted(map(str, writes)),
    }


def _value_facts(name: str, value: ir.Parameter | ir.Expression) -> dict[str, object]:
    return {"name": name, "type": str(value.type), "nullable": value.nullable}
