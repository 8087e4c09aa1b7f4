"""Commands that typer makes only when they are asked for."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, cast

import typer
from typer._click.exceptions import UsageError as UsageError  # typer has no name for it
from typer.core import TyperCommand, TyperGroup


class CommandsOnDemand(TyperGroup):
    """A group that makes a command, by reading its signature, when somebody wants that one.

    To make all of them takes longer than anything else that `omnigraph --help` does.
    """

    offered: ClassVar[Mapping[str, Callable[..., None] | typer.Typer]]
    """What a subclass has: functions, and apps of further commands, in the order of `--help`."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("Any", _Made(self.offered))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # click's signature
        """The names, without making anything."""
        return list(self.commands)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands for `--help`, which needs only what each says of itself."""
        told = {name: TyperCommand(name, help=_help(each)) for name, each in self.offered.items()}
        TyperGroup(commands=cast("Any", told)).format_commands(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is asked for; one of a group is named with its group.

        Raises:
            UsageError: there is no such command.
        """
        try:
            return super().resolve_command(ctx, args)
        except UsageError as error:
            below = [name for name in self.offered if args[0] in self._names_below(name)]
            if below:
                wanted = " or ".join(f"'{name} {args[0]}'" for name in below)
                error.message = f"No such command '{args[0]}'. Did you mean {wanted}?"
            raise

    def _names_below(self, name: str) -> set[str | None]:
        offered = self.offered[name]
        if not isinstance(offered, typer.Typer):
            return set()
        return {each.name for each in offered.registered_commands}


class _Made(Mapping[str, Any]):
    """The commands by their names, each made at its first use."""

    def __init__(self, offered: Mapping[str, Callable[..., None] | typer.Typer]) -> None:
        self._offered = offered
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make(name, self._offered[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offered)

    def __len__(self) -> int:
        return len(self._offered)


def _make(name: str, offered: Callable[..., None] | typer.Typer) -> Any:
    # Completion is installed for the whole command line, not for one command of it.
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(offered, typer.Typer):
        app.add_typer(offered, name=name)
        return typer.main.get_group(app).commands[name]
    app.command(name)(offered)
    return typer.main.get_command(app)


def _help(offered: Callable[..., None] | typer.Typer) -> str | None:
    if isinstance(offered, typer.Typer):
        return offered.info.help
    return inspect.getdoc(offered)
