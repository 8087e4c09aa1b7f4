"""`--profile NAME`: a graph, and a branch of it, by a name of the user's configuration.

Every command that has `--store` has it; `on_demand` adds it.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

import typer
from typer.core import TyperOption

if TYPE_CHECKING:
    from omnigraph.remote.logins import Profile

PROFILE_VARIABLE: Final = "OMNIGRAPH_PROFILE"
_GIVEN: Final = "omnigraph.profile"


_RUNNING: ContextVar[typer.Context] = ContextVar("running")


def remember_context(context: typer.Context) -> None:
    """Make this the context of the command that runs."""
    _RUNNING.set(context)


def current_context() -> typer.Context:
    """The context of the command that runs; that of the command line if it has no `--store`."""
    return _RUNNING.get()


def add_profile_option(command: Any) -> None:
    """Give a command that has `--store` the option `--profile`, and so each command of a group."""
    for each in getattr(command, "commands", {}).values():
        add_profile_option(each)
    names = [parameter.name for parameter in command.params]
    if "store" in names:
        command.params.insert(names.index("store") + 1, _option())


def _option() -> TyperOption:
    return TyperOption(
        param_decls=["profile", "--profile"],
        type=str,
        metavar="NAME",
        envvar=PROFILE_VARIABLE,
        show_envvar=True,
        help="The graph of a profile in ~/.config/omnigraph/config.toml, instead of --store.",
        callback=_remember,
        expose_value=False,
    )


def _remember(context: Any, parameter: Any, value: str | None) -> str | None:
    remember_context(context)
    source = context.get_parameter_source(parameter.name)
    context.meta[_GIVEN] = (value, source is not None and source.name == "COMMANDLINE")
    return value


def find_profile(store: str | None, argument: str | None = None) -> Profile | None:
    """The profile that stands for the graph of this command; None if a URI does.

    A name on the command line comes before everything in the environment, and there, a graph
    comes before a profile.

    Args:
        store: The value of `--store`.
        argument: The graph as an argument, of commands that take it so.
    """
    context = current_context()
    name, is_typed = context.meta.get(_GIVEN, (None, False))
    if name is None:
        return None
    source = context.get_parameter_source("store")
    is_store_typed = source is not None and source.name == "COMMANDLINE"
    if is_typed and (is_store_typed or argument is not None):
        message = f"{name} and the command line name different graphs: give one of them"
        raise typer.BadParameter(message, param_hint="--profile")
    if not is_typed and (store is not None or argument is not None):
        return None
    from omnigraph.remote.logins import read_config

    return read_config().profile(name)
