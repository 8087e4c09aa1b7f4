"""`omnigraph serve`: graphs over HTTP."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import Annotated

import typer

from omnigraph.cli import graphs as places
from omnigraph.cli import options, render
from omnigraph.cli.extras import require_server


def serve(
    graph_uri: Annotated[
        str | None, typer.Argument(metavar="GRAPH", help="The graph, instead of --store.")
    ] = None,
    *,
    store: options.Store = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Settings in TOML; for several graphs."),
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="127.0.0.1 by default.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", metavar="N", min=0, max=65_535, help="8080 by default."),
    ] = None,
    state: options.ServerState = None,
    allow_anonymous: Annotated[
        bool,
        typer.Option(
            "--allow-anonymous", help="Take requests without a token; from this machine only."
        ),
    ] = False,
    opens: Annotated[
        bool,
        typer.Option("--open", help="Show the web app in a browser, logged in as --actor."),
    ] = False,
    actor: options.Actor = None,
) -> None:
    """Serve graphs over HTTP until Ctrl-C. Writes that have begun are finished."""
    require_server()
    from omnigraph.server.routes.pages import is_app_built
    from omnigraph.server.serve import serve as run
    from omnigraph.server.settings import read_settings

    graphs = None
    if config is None:
        uri = places.find_place(store, graph_uri).require_stored()
        graphs = {_name_of(uri): {"uri": uri}}
    elif graph_uri is not None:
        message = "give either --config, which names the graphs, or GRAPH"
        raise typer.BadParameter(message, param_hint="GRAPH")
    settings = read_settings(
        config,
        host=host,
        port=port,
        state=state,
        graphs=graphs,
        allow_anonymous=allow_anonymous or None,
    )

    def say_address(address: str) -> None:
        for name in settings.graphs:
            render.say(f"serving {address}/graphs/{name}")
        if is_app_built():
            render.say(f"the web app is at {address}")
        else:
            render.say("the web app was not built: 'make web' builds it in a checkout")

    run(settings, started=say_address, open_for=(actor or _user()) if opens else None)


def _user() -> str:
    """The name of who runs this, for the history."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A user without a name, as in some containers.
        return "owner"


def _name_of(uri: str) -> str:
    """The name of a graph in addresses: that of its folder, without a suffix.

    >>> _name_of("s3://bucket/world.omni"), _name_of("file:///data/my graph/")
    ('world', 'my-graph')
    """
    last = uri.rstrip("/").rpartition("/")[2].removesuffix(".omni")
    kept = "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in last)
    return kept.strip("-")[:63] or "graph"
