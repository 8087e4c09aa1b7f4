"""`omnigraph entity`: one node or edge."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.errors import NotFoundError


def entity(
    type_name: Annotated[str, typer.Argument(metavar="TYPE", help="The type, such as Person.")],
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help="The id: the value of the key, or a list for several, such as '[\"a\",1]'.",
        ),
    ],
    *,
    store: options.Store = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="POINT", help="A branch, a commit or a tag; main by default."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Show one node or edge, now or at a point of the past."""
    row = graphs.open_graph(store, read_only=True).entity(type_name, key, at=at)
    if row is None:
        message = f"{type_name} {key[:200]!r} does not exist at {at or 'main'}"
        raise NotFoundError(message, hint="list ids with omnigraph query, or name a point: --at")
    # Reads Arrow, which no help needs.
    from omnigraph.formats.cells import plain_value, to_text

    values = plain_value(row)
    if json:
        render.show_json(values)
        return
    render.show_facts(
        {name: "null" if value is None else to_text(value) for name, value in values.items()}
    )
