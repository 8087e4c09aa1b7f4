"""Commands that are imported, and that typer builds, only when they are used."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any, ClassVar, cast

import typer
from typer.core import TyperCommand, TyperGroup

from omnigraph.cli.profiles import add_profile_option


class UsageError(typer.BadParameter):
    """The words of a command line do not go together; no single value is to blame."""

    def format_message(self) -> str:
        """The message alone."""
        return self.message


class CommandsOnDemand(TyperGroup):
    """A group that imports and builds a command when that command is first used.

    Building all of them takes longer than anything else that `omnigraph --help` does.
    """

    package: ClassVar[str]
    """Where the modules of the commands are. A module has a function of its own name, or a `group`
    of further commands; set by a subclass."""

    offered: ClassVar[tuple[str, ...]]
    """The commands by their names, in the order of `--help`; set by a subclass."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast("Any", _LazyCommands(self.package, self.offered))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  # click's signature
        """The names; no command is built."""
        return list(self.offered)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands for `--help`, which needs only the help text of each."""
        listed = {name: TyperCommand(name, help=_help(self._find(name))) for name in self.offered}
        TyperGroup(commands=cast("Any", listed)).format_commands(ctx, formatter)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of that name; the error for a subcommand names its group."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            below = [name for name in self.offered if args[0] in self._names_below(name)]
            if below:
                wanted = " or ".join(f"'{name} {args[0]}'" for name in below)
                error.message = f"No such command '{args[0]}'. Did you mean {wanted}?"
            raise

    def _names_below(self, name: str) -> set[str | None]:
        found = self._find(name)
        if not isinstance(found, typer.Typer):
            return set()
        return {command.name for command in found.registered_commands}

    def _find(self, name: str) -> Callable[..., None] | typer.Typer:
        return _find(self.package, name)


class _LazyCommands(Mapping[str, Any]):
    """The commands by their names, each imported and built at its first use."""

    def __init__(self, package: str, offered: tuple[str, ...]) -> None:
        self._package = package
        self._offered = offered
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._offered:
            raise KeyError(name)
        if name not in self._built:
            self._built[name] = _build(name, _find(self._package, name))
        return self._built[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._offered)

    def __len__(self) -> int:
        return len(self._offered)


def _find(package: str, name: str) -> Callable[..., None] | typer.Typer:
    file = f"{name}_" if iskeyword(name) else name
    module = vars(import_module(f"{package}.{file}"))
    return cast("Callable[..., None] | typer.Typer", module.get("group") or module[name])


def _build(name: str, offered: Callable[..., None] | typer.Typer) -> Any:
    # Completion is installed for the whole command line, not for one command.
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    if isinstance(offered, typer.Typer):
        app.add_typer(offered, name=name)
        command: Any = typer.main.get_group(app).commands[name]
    else:
        app.command(name)(offered)
        command = typer.main.get_command(app)
    add_profile_option(command)
    return command


def _help(offered: Callable[..., None] | typer.Typer) -> str | None:
    if isinstance(offered, typer.Typer):
        return offered.info.help
    return inspect.getdoc(offered)
