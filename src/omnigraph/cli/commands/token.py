"""`omnigraph token`: the tokens of a server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import options, render
from omnigraph.cli.extras import require_server

if TYPE_CHECKING:
    from omnigraph.server.tokens import AccessToken, TokenFile

group = typer.Typer(help="Make, list and revoke the tokens of a server.", no_args_is_help=True)

Config = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="The settings of the server.")
]


@group.command("create")
def create_token(
    *,
    actor: Annotated[
        str, typer.Option("--actor", metavar="NAME", help="Who the token is for; kept in history.")
    ],
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="How long it is valid, such as 90d."),
    ] = None,
    config: Config = None,
    state: options.ServerState = None,
    json: options.Json = False,
) -> None:
    """Make a token, and print it: it is shown this once, and stored nowhere."""
    from omnigraph.model.durations import require_duration

    lifetime = None if expires is None else require_duration(expires, "expires")
    text, token = _tokens(config, state).create(actor, lifetime=lifetime)
    if json:
        render.show_json({"token": text, **_facts(token)})
        return
    until = "" if token.expires_at is None else f", until {token.expires_at:%Y-%m-%d %H:%M}"
    render.say(f"token {token.token_id} of {token.actor}{until}; it is not shown again")
    render.show_text(text)


@group.command("list")
def list_tokens(
    *, config: Config = None, state: options.ServerState = None, json: options.Json = False
) -> None:
    """List the tokens: their ids, actors and times; never the tokens themselves."""
    tokens = _tokens(config, state).list()
    if json:
        render.show_json([_facts(token) for token in tokens])
        return
    render.show_table(
        ["token", "actor", "created", "expires", "revoked"],
        [
            (
                token.token_id,
                token.actor,
                *(
                    "" if time is None else f"{time:%Y-%m-%d %H:%M:%S}"
                    for time in (token.created_at, token.expires_at, token.revoked_at)
                ),
            )
            for token in tokens
        ],
    )


@group.command("revoke")
def revoke_token(
    token_id: Annotated[str, typer.Argument(metavar="TOKEN", help="The id of the token.")],
    *,
    config: Config = None,
    state: options.ServerState = None,
    json: options.Json = False,
) -> None:
    """Make a token invalid, at once, on servers that run, too."""
    token = _tokens(config, state).revoke(token_id)
    if json:
        render.show_json(_facts(token))
    else:
        render.say(f"token {token.token_id} of {token.actor} is revoked")


def _tokens(config: Path | None, state: Path | None) -> TokenFile:
    require_server()
    from omnigraph.clock import SystemClock
    from omnigraph.server.settings import read_settings
    from omnigraph.server.tokens import TokenFile

    return TokenFile(read_settings(config, state=state).token_file, SystemClock())


def _facts(token: AccessToken) -> dict[str, Any]:
    names = ("token_id", "actor", "created_at", "expires_at", "revoked_at")
    return {name: getattr(token, name) for name in names}
