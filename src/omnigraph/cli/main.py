"""The entry of the command line: the commands, and what happens when one fails."""

from __future__ import annotations

import gc
import io
import signal
import sys
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Final, NoReturn

import typer

from omnigraph.cli import output, process, render
from omnigraph.cli.exits import Exit, exit_code
from omnigraph.cli.on_demand import CommandsOnDemand
from omnigraph.cli.profiles import remember_context
from omnigraph.errors import OmnigraphError

_OBJECTS_BEFORE_COLLECTION: Final = 200_000
"""More than the libraries allocate while they are imported; some tens of megabytes at most."""


class _Commands(CommandsOnDemand):
    package = "omnigraph.cli.commands"
    offered = (
        "init",
        "load",
        "query",
        "mutate",
        "lint",
        "queries",
        "branch",
        "proposal",
        "tag",
        "schema",
        "commit",
        "log",
        "entity",
        "diff",
        "changes",
        "export",
        "copy",
        "import",
        "snapshot",
        "index",
        "embed",
        "algorithm",
        "optimize",
        "cleanup",
        "check",
        "repair",
        "recovery",
        "settings",
        "policy",
        "spark",
        "serve",
        "token",
        "login",
        "mcp",
        "stream",
        "demo",
        "version",
    )


app = typer.Typer(
    name="omnigraph",
    cls=_Commands,
    help="A branchable lakehouse graph database.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help in boxes would load a Markdown parser and a highlighter, and take twice as long.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(value: bool) -> None:  # noqa: FBT001  # typer's call
    if value:
        from importlib import metadata

        render.show_text(f"omnigraph {metadata.version('omnigraph')}")
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar="OMNIGRAPH_DEBUG", help="Show the cause of an error.")
    ] = False,
    version_: Annotated[  # noqa: ARG001  # its callback has shown it, and ended the run
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    remember_context(context)
    style = context.find_object(render.ErrorStyle)
    if style is not None:
        style.debug = debug


def main(arguments: Sequence[str]) -> int:
    """Run one command; every failure becomes a message on standard error and an exit code."""
    style = render.ErrorStyle()
    try:
        code = _run_command(arguments, style)
        output.finish()
    except output.OutputClosedError:
        # As with `head`: the reader has all it wanted.
        return Exit.DONE
    except OmnigraphError as error:
        _show(error, style)
        return exit_code(error)
    except Exception as error:  # noqa: BLE001  # the outermost frame: a bug must not print a stack
        _show(error, style)
        return Exit.FAILED
    return code


@cache
def whole_command() -> Any:
    """The command that typer makes of the declarations, made once for a process."""
    return typer.main.get_command(app)


def _run_command(arguments: Sequence[str], style: render.ErrorStyle) -> int:
    try:
        command = whole_command()
        code = command(list(arguments), prog_name=app.info.name, obj=style, standalone_mode=False)
    except SystemExit as end:
        # Shell completion ends by this exception.
        code = end.code
    except typer.TyperException as error:
        # A command line that cannot be parsed has no options yet, --json included.
        _say_usage(error, json=style.json or "--json" in arguments)
        return Exit.USAGE
    return code if isinstance(code, int) else Exit.DONE


def _say_usage(error: typer.TyperException, *, json: bool) -> None:
    context: typer.Context | None = getattr(error, "ctx", None)
    command = "omnigraph" if context is None else context.command_path
    message = error.format_message()
    if json:
        facts = {"error": message, "code": "usage", "hint": f"see '{command} --help'"}
        render.say(render.to_document({**facts, "notes": [], "details": {}}))
        return
    if context is not None:
        option = context.help_option_names[0]
        render.say(f"{context.get_usage()}\nTry '{command} {option}' for help.\n")
    render.say(f"Error: {message}")


def _show(error: Exception, style: render.ErrorStyle) -> None:
    # Imported here: a command that succeeds need not load how failures are printed.
    from omnigraph.cli.failures import show_error

    show_error(error, style)


def run() -> NoReturn:
    """The `omnigraph` command."""
    process.leave_memory()
    # A short command mostly imports: Python would collect two hundred times, and find no garbage.
    gc.set_threshold(_OBJECTS_BEFORE_COLLECTION)
    process.defer_pandas()
    # A name that the terminal's encoding lacks is escaped: better an odd letter than no answer.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    # SIGTERM acts as Ctrl-C does: the work is cancelled and cleaned up.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    process.end(code)
