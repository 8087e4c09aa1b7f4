"""Queries on the command line: the options that name one, and how they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated

import typer

from omnigraph.cli.parameters import declared_types, read_parameters
from omnigraph.cli.texts import display_name, read_text

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="NAME", help="Which query of the text; not needed when it has only one."
    ),
]
File = Annotated[
    str | None,
    typer.Option("--query", "-q", metavar="FILE", help="A .gq file, or - for standard input."),
]
Text = Annotated[
    str | None, typer.Option("--text", "-e", metavar="TEXT", help="The text of the query.")
]
Document = Annotated[
    str | None, typer.Option("--params", metavar="JSON", help="All parameters, as one JSON object.")
]
Pairs = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        "-p",
        metavar="NAME=VALUE",
        help="One parameter: plain text for a String, JSON for a number, a Bool or a list.",
    ),
]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a query, and its name in diagnostics."""

    text: str
    name: str

    @classmethod
    def read(cls, file: str | None, text: str | None) -> Source:
        """The query that `--query` or `-e` gives."""
        if (file is None) == (text is None):
            message = "give the query either by --query FILE or by -e TEXT"
            raise typer.BadParameter(message, param_hint="--query")
        if text is not None:
            return cls(text, "query")
        assert file is not None
        return cls(read_text(file), display_name(file))

    def parameters(
        self, document: str | None, pairs: list[str] | None, *, name: str | None
    ) -> Mapping[str, object]:
        """The values of `--params` and `--param`, read as the query of that name declares them."""
        types = declared_types(self.text, name) if pairs else {}
        return read_parameters(document, pairs or (), types=types)

    @contextmanager
    def name_diagnostics(self) -> Iterator[None]:
        """Name the file of the text in diagnostics from the block: the graph sees only the text."""
        from omnigraph.lang import source
        from omnigraph.lang.diagnostics import DiagnosticsError

        try:
            yield
        except DiagnosticsError as error:
            place = source.Source(self.name, error.source.text)
            raise DiagnosticsError(error.diagnostics, place, code=error.code) from error
