"""Schema and query texts as callers pass them: the text itself, or the path of a file with it.

A server passes on the `Source` that a client read, so that no name of a file is taken for one here.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from omnigraph.errors import InvalidInputError, InvalidParameterError, NotFoundError
from omnigraph.lang.source import Source, decode_text
from omnigraph.model.arguments import misfit_error
from omnigraph.storage.nearby import near_file


def schema_text(given: object) -> Source:
    """A schema's text, with its name for diagnostics."""
    if isinstance(given, Source):
        return given
    if isinstance(given, str) and not given.strip():
        message = "the schema is empty: it declares no types"
        raise InvalidParameterError(message, hint="give a .pg file, or its text", name="schema")
    # A schema text declares something in braces; a path has neither braces nor lines.
    if isinstance(given, str) and ("{" in given or "\n" in given):
        return Source("schema", given)
    if isinstance(given, str | PathLike):
        hint = "give a .pg file, or the schema's text"
        return Source(Path(given).name, read_file(Path(given), what="schema file", hint=hint))
    raise misfit_error(given, "schema", "the text of a schema, a path to a .pg file, or a catalog")


def query_text(given: object) -> Source:
    """The text of queries, with its name for diagnostics."""
    if isinstance(given, Source):
        return given
    if isinstance(given, PathLike):
        hint = "give a .gq file, or the query's text"
        return Source(Path(given).name, read_file(Path(given), what="query file", hint=hint))
    if not isinstance(given, str):
        raise misfit_error(given, "source", "the text of a query, or a path to a .gq file")
    if given.endswith(".gq") and "{" not in given:
        name = given[:200]
        message = f"{name} is a file name, not a query"
        hint = f"give the text, or --query {name}, which is Path({json.dumps(name)}) in Python"
        raise InvalidParameterError(message, hint=hint, name="source")
    return Source("query", given)


def read_file(
    path: Path, *, what: str = "file", hint: str = "check the path and its permissions"
) -> str:
    """The text of a file in UTF-8, without a byte order mark at its start.

    Args:
        what: What messages call the file.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError as cause:
        message = f"{what} {path} does not exist"
        raise NotFoundError(message, hint=near_file(path, otherwise=hint)) from cause
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        message = f"{what} {path} cannot be read: {reason}"
        raise InvalidInputError(message, hint=hint) from cause
    return decode_text(data, str(path))
