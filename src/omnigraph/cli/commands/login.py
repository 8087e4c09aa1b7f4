"""`omnigraph login`: remember a token for a server, and a graph of it under a name."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from omnigraph.cli import options, render


def login(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="A served graph: https://host/graphs/NAME.")
    ],
    *,
    profile: Annotated[
        str | None,
        typer.Option("--profile", metavar="NAME", help="Name the graph, for --profile NAME."),
    ] = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Delete the token of the server instead.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Store a token in ~/.config/omnigraph/config.toml, which only you can read.

    The token is asked for, or read from standard input: it is never an argument, which others see.
    """
    from omnigraph.remote.addresses import Address
    from omnigraph.remote.logins import config_path, forget_login, store_login

    place = Address.parse(address)
    if forget:
        found = forget_login(place)
        if json:
            render.show_json({"server": place.server, "forgotten": found})
        else:
            what = "deleted the token of" if found else "there is no token of"
            render.say(f"{what} {place.server}")
        return
    token = _read_token(place.server)
    _verify(address, token)
    path = store_login(place, token, profile)
    if json:
        facts = {"server": place.server, "profile": profile, "config": str(config_path())}
        render.show_json(facts)
        return
    render.say(f"{place.server} accepts the token; it is stored in {path}")
    if profile is not None:
        render.say(f"--profile {profile} is {place}")


def _read_token(server: str) -> str:
    if sys.stdin is not None and sys.stdin.isatty():
        return str(typer.prompt(f"token for {server}", hide_input=True, err=True)).strip()
    token = "" if sys.stdin is None else sys.stdin.readline().strip()
    if not token:
        message = "no token was given: pipe it into this command"
        raise typer.BadParameter(message, param_hint="TOKEN")
    return token


def _verify(address: str, token: str) -> None:
    """Ask the server whether it accepts the token, before it is stored."""
    from omnigraph.remote.graph import connect

    connect(address, token, read_only=True, retry_for=5.0).close()
