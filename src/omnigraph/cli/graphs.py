"""The graph that a command names: stored here or in a bucket, or served at an address."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import typer

from omnigraph.cli import options, render
from omnigraph.cli.exits import Exit
from omnigraph.cli.profiles import current_context, find_profile

if TYPE_CHECKING:
    from omnigraph.remote.graph import AnyGraph, RemoteGraph

COMMAND_RETRY_SECONDS: Final = 15.0
"""How long a command repeats a request to a server: a person waits for its answer."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a graph is, and the branch that a profile chose.

    Attributes:
        uri: A place of storage, or the address of a served graph.
    """

    uri: str
    branch: str | None = None

    @property
    def is_served(self) -> bool:
        """Whether a server has the graph."""
        # Imported here: --help needs none of it.
        from omnigraph.remote.addresses import is_address

        return is_address(self.uri)

    def require_stored(self) -> str:
        """The URI of a graph that this command has to reach in its storage."""
        if self.is_served:
            message = f"{self.uri} is served: this command runs where the graph is stored"
            raise typer.BadParameter(message, param_hint="--store")
        return self.uri


def open_graph(store: str | None, *, actor: str | None = None, read_only: bool = False) -> AnyGraph:
    """Open the graph of `--store` or of a profile, wherever it is."""
    return open_place(find_place(store), actor=actor, read_only=read_only)


def find_place(store: str | None, argument: str | None = None) -> Place:
    """The graph that a command line names: by an argument, `--store`, or a profile."""
    profile = find_profile(store, argument)
    if profile is not None:
        return Place(profile.store, profile.branch)
    return Place(options.require_one_store(current_context(), argument, store))


def open_place(place: Place, *, actor: str | None = None, read_only: bool = False) -> AnyGraph:
    """Open a graph by its URI or its address.

    What a command asks a server is closed with the command. If it wrote, the address is printed on
    standard error when the command ends.
    """
    handle: AnyGraph
    if place.is_served:
        from omnigraph.remote.graph import connect

        handle = remote = connect(
            place.uri, actor=actor, read_only=read_only, retry_for=COMMAND_RETRY_SECONDS
        )
        current_context().call_on_close(lambda: _end(remote))
    else:
        from omnigraph import graph

        handle = graph.open(place.uri, actor=actor, read_only=read_only)
    return handle if place.branch is None else handle.at(branch=place.branch)


def _end(remote: RemoteGraph) -> None:
    if remote.has_written:
        render.say(f"sent to {remote.uri}")
    remote.close()


def ask_first(handle: AnyGraph, deed: str, *, yes: bool) -> None:
    """Ask a person at a terminal before something is destroyed in a graph that others share.

    A program is not asked: it has no terminal, and said `--confirm` where that is needed.

    Args:
        deed: What the command does, as in "delete branch draft".
    """
    terminal = sys.stdin is not None and sys.stdin.isatty()
    if yes or not terminal or not Place(handle.uri).is_served:
        return
    render.say(f"{deed} of {handle.uri}? [y/N]")
    assert sys.stdin is not None, "it is a terminal"
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        render.say("nothing was changed")
        raise typer.Exit(Exit.FAILED)
