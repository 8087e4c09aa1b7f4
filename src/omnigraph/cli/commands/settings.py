"""`omnigraph settings`: read and change the settings of a graph."""

from __future__ import annotations

import re
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import graphs, options, render

if TYPE_CHECKING:
    from omnigraph.model.settings import Setting

_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,18}")

group = typer.Typer(help="Read and change the settings of a graph.", no_args_is_help=True)

Key = Annotated[
    str, typer.Argument(metavar="KEY", help="The setting, such as maintenance.keep_days.")
]


@group.command("list")
def list_settings(*, store: options.Store = None, json: options.Json = False) -> None:
    """List every setting, its value and where that comes from."""
    settings = graphs.open_graph(store, read_only=True).settings.list()
    if json:
        render.show_json([asdict(setting) for setting in settings])
    else:
        render.show_table(
            ["setting", "value", "from", "default", "accepts"],
            [
                (setting.key, setting.value, setting.source, setting.default, setting.accepted)
                for setting in settings
            ],
        )
    for setting in settings:
        if setting.warning is not None:
            render.say(f"warning: {setting.warning}")


@group.command("get")
def get_setting(key: Key, *, store: options.Store = None, json: options.Json = False) -> None:
    """Print the value of one setting: as it was set, or its default."""
    value = graphs.open_graph(store, read_only=True).settings.get(key)
    if json:
        render.show_json({"key": key, "value": value})
    else:
        render.show_text(str(value))


@group.command("set")
def set_setting(
    key: Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its new value.")],
    *,
    store: options.Store = None,
    json: options.Json = False,
) -> None:
    """Set one setting, for all branches of the graph."""
    handle = graphs.open_graph(store)
    _report(handle.settings.set(key, int(value) if _NUMBER.fullmatch(value) else value), json=json)


@group.command("unset")
def unset_setting(key: Key, *, store: options.Store = None, json: options.Json = False) -> None:
    """Give one setting its default again."""
    handle = graphs.open_graph(store)
    _report(handle.settings.unset(key), json=json)


def _report(setting: Setting, *, json: bool) -> None:
    with render.report_of(f"{setting.key} is {setting.value}"):
        if json:
            render.show_json(asdict(setting))
        else:
            render.show_facts(
                {"setting": setting.key, "value": setting.value, "from": setting.source}
            )
