"""Merges on the command line: how conflicts are decided, and how an outcome is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import render
from omnigraph.cli.texts import read_text
from omnigraph.errors import NotFoundError

if TYPE_CHECKING:
    from omnigraph.merge.outcomes import MergeOutcome

_SIDES: Final = ("ours", "theirs")

Resolve = Annotated[
    str | None,
    typer.Option(
        "--resolve",
        metavar="ours|theirs|FILE",
        help="How to decide conflicts: ours keeps the target's side, theirs takes the source's, "
        "a JSON file decides one by one. unique_violation and cardinality_violation cannot be "
        "decided for theirs.",
    ),
]
DeleteBranch = Annotated[
    bool, typer.Option("--delete-branch", help="Delete the source once it is merged.")
]


def read_resolutions(given: str | None) -> str | None:
    """A side, or the text of a file of decisions."""
    if given is None or given in _SIDES:
        return given
    try:
        return read_text(given)
    except NotFoundError as error:
        from omnigraph.lang.diagnostics import nearest

        if (side := nearest(given, _SIDES)) is not None:
            error.hint = f"did you mean {side}? It takes ours, theirs, or a file of decisions"
        raise


def show_merge(outcome: MergeOutcome, *, dry_run: bool = False) -> None:
    """Print how a merge ended, or would end, for people."""
    sides = f"branch {outcome.source} into {outcome.target}"
    if outcome.commit_id is not None:
        merged = f"branch {outcome.source}, at {outcome.source_commit}, into {outcome.target}"
        render.say(f"merged {merged} as commit {outcome.commit_id} ({outcome.outcome})")
        render.say_engine(outcome.engine, outcome.why)
    elif outcome.is_conflicted:
        count = outcome.conflict_count
        conflicts = "1 conflict" if count == 1 else f"{count:,} conflicts"
        if not count:
            # Sight leaves out those of hidden types.
            conflicts = "conflicts of hidden types, which an actor that can read them has to decide"
        beside = "; beside them it would change" if outcome.changes else ""
        render.say(f"merging {sides} has {conflicts}{beside}")
    elif not dry_run or not (outcome.changes or outcome.steps):
        render.say(f"{outcome.outcome}: {outcome.target} has all of {outcome.source}")
    else:
        render.say(f"merging {sides} would change ({outcome.outcome})")
    for step in outcome.steps:
        render.show_text(step.describe())
    if outcome.changes:
        render.show_table(
            ["type", "inserted", "updated", "deleted"],
            [
                (name, counts.inserted, counts.updated, counts.deleted)
                for name, counts in outcome.changes.items()
            ],
        )
    if outcome.conflicts:
        from omnigraph.cli.failures import say_conflicts
        from omnigraph.merge.conflicts import how_to_decide

        say_conflicts(outcome.conflicts, outcome.conflict_count)
        render.say(f"  hint: {how_to_decide(outcome.conflicts)}")
    if dry_run:
        render.say("nothing was written: this was a dry run")
    elif outcome.deleted_source:
        render.say(f"deleted branch {outcome.source}")
