"""`omnigraph proposal`: propose to merge a branch, review proposals, and merge them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from omnigraph.cli import graphs, merges, options, render
from omnigraph.cli.exits import Exit
from omnigraph.cli.spark import quick_spark

if TYPE_CHECKING:
    from omnigraph.errors import NotAllowedError
    from omnigraph.model.proposals import Comment, Proposal, Review

group = typer.Typer(
    help="Propose to merge branches; approve, comment on and merge proposals.",
    no_args_is_help=True,
)

_OF_ACTORS: Final = frozenset({"actor", "may", "refusals"})
Number = Annotated[int, typer.Argument(metavar="NUMBER", help="The proposal's number.", min=1)]


Reviewed = Annotated[
    str | None,
    typer.Option("--commit", metavar="ID", help="The commit of the source that you have reviewed."),
]


@group.command("create")
def create_proposal(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The branch whose changes are proposed.")
    ],
    *,
    title: Annotated[
        str, typer.Option("--title", metavar="TEXT", help="One line that says what changes.")
    ],
    description: Annotated[
        str, typer.Option("--description", metavar="TEXT", help="Why, for the reviewers.")
    ] = "",
    target: Annotated[
        str,
        typer.Option("--into", metavar="TARGET", help="The branch to merge into."),
    ] = "main",
    store: options.Store = None,
    actor: options.Actor = None,
    json: options.Json = False,
) -> None:
    """Propose to merge what a branch changed into another."""
    handle = graphs.open_graph(store, actor=actor)
    proposal = handle.proposals.create(source, title, into=target, description=description)
    _report(proposal, f"proposal {proposal.number} was made", json=json)


@group.command("list")
def list_proposals(
    *,
    store: options.Store = None,
    state: Annotated[
        str,
        typer.Option("--state", metavar="open|merged|closed|all", help="Which proposals."),
    ] = "open",
    json: options.Json = False,
) -> None:
    """List proposals, the newest first."""
    handle = graphs.open_graph(store, read_only=True)
    proposals = handle.proposals.list(state=None if state == "all" else state)
    if json:
        render.show_json([proposal.to_json() for proposal in proposals])
        return
    render.show_table(
        ["number", "state", "source", "target", "author", "created", "title"],
        [
            (
                proposal.number,
                proposal.state,
                proposal.source,
                proposal.target,
                proposal.author,
                f"{proposal.created_at:%Y-%m-%d %H:%M:%S}",
                proposal.title,
            )
            for proposal in proposals
        ],
    )


@group.command("show")
def show_proposal(
    number: Number, *, store: options.Store = None, json: options.Json = False
) -> None:
    """Show a proposal: what it would change, its conflicts, its approvals and comments."""
    from omnigraph.model.proposals import ProposalState

    proposals = graphs.open_graph(store, read_only=True).proposals
    review = proposals.show(number)
    is_open = review.proposal.state is ProposalState.OPEN and review.source_commit is not None
    preview = None
    if is_open:
        try:
            preview = proposals.preview(number)
        except NotAllowedError as refusal:
            # The proposal itself is for every actor that can read its branches.
            render.say(f"no preview: {refusal.message}")
    if preview is not None:
        render.say_hidden(preview.hidden)
    if json:
        merge = None if preview is None else preview.to_json()
        facts = {**review.to_json(), "merge": merge}
        # The handle is read-only, and would name that as the reason for every refusal.
        render.show_json({name: facts[name] for name in facts if name not in _OF_ACTORS})
        return
    _show_review(review)
    if preview is not None:
        merges.show_merge(preview, dry_run=True)


@group.command("approve")
def approve_proposal(
    number: Number,
    *,
    commit: Reviewed = None,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Take your approval back.")] = False,
    store: options.Store = None,
    actor: options.Actor = None,
    json: options.Json = False,
) -> None:
    """Approve a proposal as its source is now; a later write to the source voids that."""
    if withdraw and commit is not None:
        wrong = "an approval is taken back whatever commit it was for"
        raise typer.BadParameter(wrong, param_hint="--commit")
    proposals = graphs.open_graph(store, actor=actor).proposals
    if withdraw:
        proposal, done = proposals.withdraw_approval(number), "the approval was taken back"
    else:
        proposal, done = proposals.approve(number, commit=commit), f"proposal {number} is approved"
    _report(proposal, done, json=json)


@group.command("comment")
def comment_on_proposal(
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The comment.")],
    *,
    type_name: Annotated[
        str | None, typer.Option("--type", metavar="NAME", help="The type of a row.")
    ] = None,
    id_: Annotated[str | None, typer.Option("--id", metavar="ID", help="The row's id.")] = None,
    property_: Annotated[
        str | None, typer.Option("--property", metavar="NAME", help="One property of the row.")
    ] = None,
    store: options.Store = None,
    actor: options.Actor = None,
    json: options.Json = False,
) -> None:
    """Comment on a proposal, or on a row that it changes."""
    proposals = graphs.open_graph(store, actor=actor).proposals
    proposal = proposals.comment(number, text, type_name=type_name, id=id_, property=property_)
    _report(proposal, f"comment {len(proposal.comments)} was made", json=json)


@group.command("close")
def close_proposal(
    number: Number,
    *,
    store: options.Store = None,
    actor: options.Actor = None,
    json: options.Json = False,
) -> None:
    """End a proposal without merging it. Its branch stays."""
    proposals = graphs.open_graph(store, actor=actor).proposals
    _report(proposals.close(number), f"proposal {number} was closed", json=json)


@group.command("merge")
def merge_proposal(
    number: Number,
    *,
    commit: Reviewed = None,
    resolve: merges.Resolve = None,
    delete_branch: merges.DeleteBranch = False,
    engine: options.OnEngine = None,
    store: options.Store = None,
    actor: options.Actor = None,
    message: options.Message = None,
    json: options.Json = False,
) -> None:
    """Merge a proposal, exactly as it was approved, and end it."""
    resolutions = merges.read_resolutions(resolve)
    proposals = graphs.open_graph(store, actor=actor).proposals
    with quick_spark(), render.show_notes_on_interrupt():
        outcome = proposals.merge(
            number,
            commit=commit,
            resolve=resolutions,
            delete_branch=delete_branch,
            engine=engine,
            message=message,
        )
    render.say_hidden(outcome.hidden)
    with render.report_of_commit(outcome.commit_id):
        if json:
            render.show_json(outcome.to_json())
        else:
            merges.show_merge(outcome)
        render.say_warnings(outcome.warnings)
    if outcome.is_conflicted:
        raise typer.Exit(Exit.CONFLICT)


def _report(proposal: Proposal, done: str, *, json: bool) -> None:
    with render.report_of(done):
        if json:
            render.show_json(proposal.to_json())
            return
        render.show_facts(_facts(proposal))
        render.say(done)


def _facts(proposal: Proposal) -> dict[str, object]:
    return {
        "proposal": proposal.number,
        "title": proposal.title,
        "state": proposal.state,
        "merge": f"{proposal.source} into {proposal.target}",
        "author": proposal.author,
    }


def _show_review(review: Review) -> None:
    proposal = review.proposal
    approved = ", ".join(each.actor for each in review.approvals) or "nobody"
    if review.approvals_needed:
        approved = f"{approved} ({review.approvals_needed} needed)"
    facts = _facts(proposal) | {
        "created": f"{proposal.created_at:%Y-%m-%d %H:%M:%S}",
        "source": review.source_commit or "deleted",
        "approved by": approved,
    }
    if proposal.ending is not None:
        facts[str(proposal.state)] = (
            f"{proposal.ending.at:%Y-%m-%d %H:%M:%S} by {proposal.ending.actor}"
        )
        facts["commit"] = proposal.ending.commit_id
    render.show_facts(facts)
    for text in (proposal.description, *map(_describe, proposal.comments)):
        if text:
            render.show_text(text)


def _describe(comment: Comment) -> str:
    about = ""
    if comment.row is not None:
        place = f"{comment.row.type_name} {comment.row.id}"
        about = f" on {place}" + (f".{comment.row.property}" if comment.row.property else "")
    return f"{comment.number}. {comment.actor}{about}: {comment.text}"
