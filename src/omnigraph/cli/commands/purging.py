"""What `omnigraph schema apply --purge` and `schema purge` show."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final

import typer

from omnigraph.cli import render
from omnigraph.cli.commands.cleanup import format_size, show_cleanup

if TYPE_CHECKING:
    from omnigraph.maintenance.purge.results import PurgeResult, PurgeRewrite
    from omnigraph.schema.plan import SchemaPlan


_COMMITS_SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True)
class PurgeRules:
    """The commits that a purge may not touch, as the command line has them."""

    keep_commits: int | None
    older_than: str | None
    grace: str | None


def require_purge(rules: PurgeRules, *, purge: bool, confirm: bool) -> None:
    """Refuse options of a purge without one."""
    given = {
        "--confirm": confirm or None,
        **{f"--{k.replace('_', '-')}": v for k, v in asdict(rules).items()},
    }
    extra = [option for option, value in given.items() if value is not None]
    if extra and not purge:
        message = "it belongs to a purge: give --purge, too"
        raise typer.BadParameter(message, param_hint=extra[0])


def purge_facts(result: PurgeResult) -> dict[str, object]:
    """A purge as plain values."""
    return {**asdict(result), "is_done": result.is_done, "ready_at": result.ready_at}


def show_preview(result: PurgeResult, plan: SchemaPlan | None, *, json: bool) -> None:
    """Show what a purge would do, after a change if one is given."""
    if json:
        facts = {} if plan is None else plan.to_json()
        render.show_json({**facts, "purge": {**purge_facts(result), "removed": False}})
        return
    if plan is not None:
        render.show_text(plan.describe())
    if not result.dropped:
        render.say("nothing is left to purge")
        return
    _show_held(result, "would be purged")
    for rewrite in result.rewrites:
        render.say(f"{_describe(rewrite)} would be rewritten without it")
    if result.cleanup is None:
        _show_commits(result)
        _show_waits(result)
        render.say("nothing was changed: give --confirm to begin")
    else:
        show_cleanup(result.cleanup, confirm=False)


def show_purge(result: PurgeResult) -> None:
    """Show what a purge did, and what is left to do."""
    for rewrite in result.rewrites:
        what = f"{_describe(rewrite)} written again without it"
        render.say(f"{what}, commit {rewrite.commit_id}")
    if result.cleanup is not None:
        show_cleanup(result.cleanup, confirm=True)
    if result.is_done:
        names = ", ".join(result.dropped)
        render.say(f"purged: {names}" if names else "nothing is left to purge")
        return
    if result.held:
        _show_held(result, "not purged yet")
    _show_waits(result)
    if result.staged is not None:
        staged = result.staged
        which = f"{_count(staged.files, 'file')} ({format_size(staged.size)}) of unfinished writes"
        until = f"{staged.until:%Y-%m-%d %H:%M:%S} UTC"
        render.say(f"{which} may hold it: purge again after {until}, when they are removed")


def _show_held(result: PurgeResult, what: str) -> None:
    render.say(f"{what}: {', '.join(result.dropped)}")
    rows = [(held.name, held.files, format_size(held.size)) for held in result.held]
    render.show_table(["type", "files that hold it", "size"], rows)


def _show_commits(result: PurgeResult) -> None:
    count = len(result.commits)
    have = "has" if count == 1 else "have"
    render.say(f"{_count(count, 'commit')} that {have} it would expire:")
    for commit in result.commits[:_COMMITS_SHOWN_MAX]:
        when = f"{commit.created_at:%Y-%m-%d %H:%M:%S}"
        render.say(f"  {commit.commit_id}  {when}  {commit.branch}  {commit.operation}")
    if count > _COMMITS_SHOWN_MAX:
        render.say(f"  … and {count - _COMMITS_SHOWN_MAX:,} more (--json has all of them)")


def _show_waits(result: PurgeResult) -> None:
    for need in result.waits:
        until = "" if need.until is None else f" until {need.until:%Y-%m-%d %H:%M:%S} UTC"
        render.say(f"it waits{until}: {need}")


def _describe(rewrite: PurgeRewrite) -> str:
    return f"{_count(rewrite.rows, 'row')} of {rewrite.type_name} on branch {rewrite.branch}"


def _count(number: int, noun: str) -> str:
    return f"1 {noun}" if number == 1 else f"{number:,} {noun}s"
