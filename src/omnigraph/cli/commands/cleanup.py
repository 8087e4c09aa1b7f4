"""`omnigraph cleanup`: expire old commits, and remove what nothing needs any more."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import graphs, options, render
from omnigraph.cli.exits import Exit

if TYPE_CHECKING:
    from omnigraph.maintenance.cleanup.results import CleanupResult


def cleanup(
    *,
    store: options.Store = None,
    keep_commits: options.KeepCommits = None,
    older_than: options.OlderThan = None,
    grace: options.Grace = None,
    keep_all: Annotated[
        bool, typer.Option("--keep-all", help="Keep all commits, whatever the settings say.")
    ] = False,
    confirm: options.Confirm = False,
    yes: options.Yes = False,
    json: options.Json = False,
) -> None:
    """Expire old commits, and remove what nothing needs. Without --confirm, show what.

    Without rules, the settings maintenance.keep_commits and maintenance.keep_days apply if somebody
    set them; else all commits are kept.
    """
    handle = graphs.open_graph(store, read_only=not confirm)
    if confirm:
        graphs.ask_first(handle, "expire old commits and remove files", yes=yes)
    result = handle.cleanup(
        keep_commits=keep_commits,
        older_than=older_than,
        grace=grace,
        keep_all=keep_all,
        dry_run=not confirm,
    )
    if json:
        render.show_json({**asdict(result), "removed": confirm})
    else:
        show_cleanup(result, confirm=confirm)
    if result.troubles:
        raise typer.Exit(Exit.FAILED)


def show_cleanup(result: CleanupResult, *, confirm: bool) -> None:
    """Show what was removed, or would be."""
    render.say_hidden(result.hidden)
    if result.versions:
        rows = [
            (table.name or table.location, table.versions, table.files, format_size(table.size))
            for table in result.versions
        ]
        render.show_table(["table", "versions", "files", "size"], rows)
    whole = [
        *(("ref", orphan.ref, orphan.location) for orphan in result.refs),
        *(("table", *_split(path)) for path in result.tables),
        *(("schema", *_split(path)) for path in result.schemas),
        *(("scratch", *_split(path)) for path in result.scratch),
    ]
    if whole:
        render.show_table(["kind", "name", "in"], whole)
    if result.rules:
        render.say(_count_commits(result, confirm=confirm))
    render.say(_summary(result, confirm=confirm))
    for trouble in result.troubles:
        place = trouble.location
        what = place if trouble.ref is None else f"{trouble.ref} in {place}"
        render.say(f"{what} was not removed: {trouble.message}")


def _split(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return name, folder


def _count_commits(result: CleanupResult, *, confirm: bool) -> str:
    count = len(result.commits)
    which = "1 commit" if count == 1 else f"{count:,} commits"
    what = f"{which} expired" if confirm else f"{which} to expire"
    return f"{what}, {result.kept:,} kept ({result.rules})"


def _summary(result: CleanupResult, *, confirm: bool) -> str:
    if result.is_empty:
        return "there is nothing to remove"
    size = format_size(result.size)
    if confirm:
        return f"removed {size}"
    return f"nothing was removed: give --confirm to remove {size}"


def format_size(size: int) -> str:
    """A number of bytes in a unit that is easy to read.

    >>> format_size(999), format_size(15_300), format_size(2_000_000)
    ('999 B', '15.3 KB', '2.0 MB')
    """
    amount, unit = float(size), "B"
    for larger in ("KB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger
    return f"{size} B" if unit == "B" else f"{amount:.1f} {unit}"
