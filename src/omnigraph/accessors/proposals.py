"""A graph's proposals: `graph.proposals`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol, assert_never

from omnigraph.clock import Clock
from omnigraph.errors import (
    BranchNotFoundError,
    ErrorCode,
    InvalidInputError,
    InvalidParameterError,
    OmnigraphError,
    ProposalNotFoundError,
    StaleHeadError,
)
from omnigraph.manifest import lineage
from omnigraph.model.arguments import require_choice, require_number, require_text
from omnigraph.model.commits import SAME_ROWS_KINDS, require_actor, require_message
from omnigraph.model.ids import CommitId
from omnigraph.model.names import MAIN, BranchName
from omnigraph.model.proposals import (
    Approval,
    Ending,
    Proposal,
    ProposalState,
    Review,
    ReviewAction,
    RowPlace,
)
from omnigraph.policy.actions import Action
from omnigraph.proposals import transitions

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.changes.diffs import GraphDiff
    from omnigraph.graph import Graph
    from omnigraph.manifest.reader import Manifest
    from omnigraph.manifest.snapshot import Snapshot
    from omnigraph.merge.outcomes import MergeOutcome
    from omnigraph.merge.run import Merges, Options


class MergeBranches(Protocol):
    """Merges a branch into another under the policy."""

    def __call__(
        self,
        theirs: BranchName,
        ours: BranchName,
        options: Options,
        who: str | None,
        why: str | None,
        *,
        delete_branch: bool = ...,
    ) -> MergeOutcome:
        """Merge, and return how that ended."""
        ...


class ProposalList:
    """A graph's proposals: `graph.proposals`. A proposal asks to merge a branch into another."""

    def __init__(
        self,
        graph: Graph,
        manifest: Manifest,
        clock: Clock,
        actor: str | None,
        merges: Callable[[], Merges],
        merge: MergeBranches,
    ) -> None:
        from omnigraph.proposals.records import ProposalRecords

        self._graph = graph
        self._manifest = manifest
        self._clock = clock
        self._actor = actor
        self._merges = merges
        self._merge = merge
        self._records = ProposalRecords(manifest.store, clock)

    def create(
        self,
        source: str,
        title: str,
        *,
        into: str = MAIN,
        description: str = "",
        actor: str | None = None,
    ) -> Proposal:
        """Propose to merge a branch into another.

        Args:
            title: One line that says what changes.

        Raises:
            BranchNotFoundError: the graph has no such branch.
            InvalidInputError: the source has nothing that the target lacks, or both are one branch.
            InvalidParameterError: the title or the description is no acceptable text, or nobody
                is named as the author.
            NotAllowedError: the handle was opened read-only.
        """
        self._graph.require_unblocked()
        author = self._require_actor(actor)
        theirs = self._graph.full_snapshot(branch=require_text(source, "source"))
        ours = self._graph.full_snapshot(branch=require_text(into, "into"))
        for side in (theirs, ours):
            with self._graph.authority.conceal(side.branch):
                self._graph.authority.acting_as(author).require_visible(side.branch)
        if theirs.branch == ours.branch:
            message = f"branch {theirs.branch} cannot be merged into itself"
            raise InvalidInputError(message, hint="name another branch to merge into")
        proposal = Proposal(
            0,
            transitions.require_title(title),
            transitions.require_remark(description, "description"),
            theirs.branch,
            ours.branch,
            theirs.ref,
            author,
            self._clock.now(),
        )
        if self._merges().base_of(theirs, ours).rows_from == theirs.head.rows_from:
            message = f"nothing to propose: branch {ours.branch} has all changes of {theirs.branch}"
            hint = f"write to {theirs.branch} first"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.PROPOSAL_EMPTY)
        return self._records.create(proposal)

    def list(self, *, state: str | None = "open") -> tuple[Proposal, ...]:
        """The proposals whose branches the actor may read, the newest first.

        Args:
            state: `open`, `merged` or `closed`; all when None.

        Raises:
            InvalidParameterError: there is no such state.
            StorageError: a record cannot be read.
        """
        wanted = None if state is None else require_choice(state, ProposalState, "state")
        return tuple(self._visible(wanted))

    def _visible(self, wanted: ProposalState | None) -> Iterator[Proposal]:
        for number in self._records.numbers():
            proposal = self._records.find(number)
            if wanted in (None, proposal.state) and self._may_read(proposal):
                yield self._shown(proposal)

    def _shown(self, proposal: Proposal, who: str | None = None) -> Proposal:
        """A proposal as an actor may see it; as that of the handle may when None."""
        authority = self._graph.authority.acting_as(who)
        return authority.sight(proposal.source, proposal.target).proposal(proposal)

    def _change(
        self, number: int, who: str, transition: Callable[[Proposal], Proposal]
    ) -> Proposal:
        return self._shown(self._records.change(number, transition), who)

    def _may_read(self, proposal: Proposal, who: str | None = None) -> bool:
        may = self._graph.authority.acting_as(who).allows
        return may(Action.READ, proposal.source) and may(Action.READ, proposal.target)

    def show(self, number: int, *, actor: str | None = None) -> Review:
        """One proposal, where it stands, and what the actor may do to it.

        Args:
            actor: Who looks: `refusals` of the result are about this actor.

        Raises:
            ProposalNotFoundError: the graph has no such proposal, or the actor may not read a
                branch of it.
        """
        proposal = self._find(number)
        theirs = self._source(proposal)
        needed = self._graph.authority.approvals_needed(proposal.target)
        head: CommitId | None = None
        base: CommitId | None = None
        if proposal.ending is not None and proposal.ending.source_commit is not None:
            head, base = proposal.ending.source_commit, proposal.ending.base_commit
        elif theirs is not None:
            head, base = theirs.head.commit_id, self._base(proposal, theirs)
        who = require_actor(actor) or self._actor
        writers = self._writers(proposal, theirs)
        refusals = dict(self._refusals(proposal, theirs, who, writers))
        approvals = _counting(proposal, head, writers)
        shown = self._shown(proposal, who)
        return Review(shown, head, base, approvals, needed, who, refusals)

    def _writers(self, proposal: Proposal, theirs: Snapshot | None) -> frozenset[str]:
        """Who wrote what an open proposal would merge: their approvals do not count."""
        if theirs is None or proposal.state is not ProposalState.OPEN:
            return frozenset()
        try:
            ours = self._manifest.current(proposal.target)
        except BranchNotFoundError:
            return frozenset()
        return frozenset(
            commit.actor
            for commit in self._merges().commits_of(theirs, ours)
            if commit.actor is not None and commit.operation not in SAME_ROWS_KINDS
        )

    def _refusals(
        self,
        proposal: Proposal,
        theirs: Snapshot | None,
        who: str | None,
        writers: Collection[str],
    ) -> Iterator[tuple[str, str]]:
        """Why an actor may not do something to a proposal, by action.

        The same functions refuse the action itself.
        """
        for action in ReviewAction:
            try:
                self._graph.require_writable()
                self._require_action(action, proposal, theirs, self._require_actor(who), writers)
            except OmnigraphError as refusal:
                yield str(action), refusal.message

    def _require_action(
        self,
        action: ReviewAction,
        proposal: Proposal,
        theirs: Snapshot | None,
        who: str,
        writers: Collection[str],
    ) -> None:
        """Refuse what an actor may not do to a proposal.

        Raises:
            OmnigraphError: the actor may not, or it makes no sense now.
        """
        match action:
            case ReviewAction.COMMENT:
                transitions.require_room(proposal)
            case ReviewAction.WITHDRAW_APPROVAL:
                transitions.withdraw_approval(proposal, who)
            case ReviewAction.APPROVE:
                head = self._require_known(proposal, theirs).head.commit_id
                self._require_reviewer(proposal, who, head)
                transitions.approve(proposal, who, head, proposal.created_at, writers=writers)
            case ReviewAction.CLOSE:
                self._require_closer(proposal, who)
                transitions.require_open(proposal)
            case ReviewAction.MERGE:
                transitions.require_open(proposal)
                known = self._require_known(proposal, theirs)
                self._require_merger(proposal, known, who, writers)
            case _:
                assert_never(action)

    def _require_reviewer(self, proposal: Proposal, who: str, head: CommitId) -> None:
        approvals = len(proposal.approvals_of(head)) + 1
        # Who may not merge has no say, whatever is still missing.
        enough = max(approvals, self._graph.authority.approvals_needed(proposal.target))
        self._graph.authority.acting_as(who).require(
            Action.MERGE, branch=proposal.target, source=proposal.source, approvals=enough
        )

    def _require_closer(self, proposal: Proposal, who: str) -> None:
        if who == proposal.author:
            return
        needed = self._graph.authority.approvals_needed(proposal.target)
        self._graph.authority.acting_as(who).require(
            Action.MERGE, branch=proposal.target, source=proposal.source, approvals=needed
        )

    def _require_merger(
        self, proposal: Proposal, theirs: Snapshot, who: str, writers: Collection[str]
    ) -> None:
        merging = self._graph.authority.acting_as(who)
        if not merging.is_limited:
            return
        ours = self._graph.full_snapshot(branch=proposal.target)
        types = self._merges().changed_types(theirs, ours)
        merging.require(
            Action.MERGE,
            branch=proposal.target,
            types=sorted(types),
            source=proposal.source,
            approvals=len(_counting(proposal, theirs.head.commit_id, writers)),
        )

    def _find(self, number: int, who: str | None = None) -> Proposal:
        """A proposal whose branches an actor may read; that of the handle when None."""
        proposal = self._records.find(require_number(number, "number"))
        if not self._may_read(proposal) or not self._may_read(proposal, who):
            message = f"the graph has no proposal {number}"
            raise ProposalNotFoundError(message, hint="see 'omnigraph proposal list'")
        return proposal

    def _source(self, proposal: Proposal) -> Snapshot | None:
        """The source as it is now; None if that very branch was deleted."""
        try:
            theirs = self._manifest.current(proposal.source)
        except BranchNotFoundError:
            return None
        return theirs if theirs.ref == proposal.source_ref else None

    def _require_source(self, proposal: Proposal) -> Snapshot:
        return self._require_known(proposal, self._source(proposal))

    def _require_known(self, proposal: Proposal, theirs: Snapshot | None) -> Snapshot:
        if theirs is None:
            message = f"branch {proposal.source} of proposal {proposal.number} was deleted"
            hint = f"'omnigraph proposal close {proposal.number}' closes the proposal"
            raise BranchNotFoundError(message, hint=hint)
        return theirs

    def _base(self, proposal: Proposal, theirs: Snapshot) -> CommitId | None:
        try:
            ours = self._manifest.current(proposal.target)
        except BranchNotFoundError:
            return None
        return self._merges().base_of(theirs, ours).commit_id

    def diff(
        self, number: int, *, types: str | None = None, engine: str | None = None
    ) -> GraphDiff:
        """What a proposal changes: between the newest common commit and its source.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            BranchNotFoundError: its source was deleted before it was merged.
        """
        review = self.show(number)
        if review.source_commit is None or review.base_commit is None:
            self._require_source(review.proposal)
        return self._graph.diff(
            str(review.base_commit), str(review.source_commit), types=types, engine=engine
        )

    def preview(self, number: int, *, resolve: str | None = None) -> MergeOutcome:
        """What the merge of an open proposal would do, with every conflict. Nothing changes.

        Whoever may read all of both branches may look, whether or not they may merge them.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            InvalidInputError: it has ended, or `resolve` is invalid.
        """
        proposal = self._find(number)
        transitions.require_open(proposal)
        self._require_source(proposal)
        return self._graph.merge(
            proposal.source, into=proposal.target, resolve=resolve, dry_run=True
        )

    def approve(
        self, number: int, *, commit: str | None = None, actor: str | None = None
    ) -> Proposal:
        """Consent to a proposal as its source is now. Later writes to the source void it.

        Args:
            commit: The commit of the source that was reviewed; if the source has moved since, the
                approval is refused. As it is now when None.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            InvalidInputError: it has ended.
            StaleHeadError: the source is not at `commit`. Nothing changed.
            NotAllowedError: the reviewer made the proposal, wrote a commit that it would merge, or
                may not merge into the target.
        """
        reviewer, proposal = self._begin(number, actor)
        theirs = self._require_source(proposal)
        head = theirs.head.commit_id
        _require_reviewed(proposal, commit, head)
        self._require_reviewer(proposal, reviewer, head)
        now, writers = self._clock.now(), self._writers(proposal, theirs)
        return self._change(
            proposal.number,
            reviewer,
            lambda known: transitions.approve(known, reviewer, head, now, writers=writers),
        )

    def withdraw_approval(self, number: int, *, actor: str | None = None) -> Proposal:
        """Take one's approval back.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            InvalidInputError: it has ended, or the actor has not approved it.
        """
        reviewer, proposal = self._begin(number, actor)
        return self._change(
            proposal.number,
            reviewer,
            lambda known: transitions.withdraw_approval(known, reviewer),
        )

    def comment(
        self,
        number: int,
        text: str,
        *,
        type_name: str | None = None,
        id: str | None = None,  # noqa: A002  # the column's own name
        property: str | None = None,  # noqa: A002  # as the language says
        actor: str | None = None,
    ) -> Proposal:
        """Remark on a proposal, on a row of it, or on a property of that row.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            InvalidParameterError: the remark is blank or too long, or a row is half named.
            LimitExceededError: the proposal has as many remarks as it can hold.
        """
        who, proposal = self._begin(number, actor)
        remark = transitions.require_remark(text, "comment")
        row = _row_place(type_name, id, property)
        now = self._clock.now()
        return self._change(
            proposal.number, who, lambda known: transitions.comment(known, who, remark, row, now)
        )

    def close(self, number: int, *, actor: str | None = None) -> Proposal:
        """End a proposal without a merge; its author may, and whoever may merge it.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            InvalidInputError: it has ended already.
            NotAllowedError: the actor neither made it nor may merge into the target.
        """
        who, proposal = self._begin(number, actor)
        self._require_closer(proposal, who)
        now = self._clock.now()
        return self._change(proposal.number, who, lambda known: transitions.close(known, who, now))

    def merge(
        self,
        number: int,
        *,
        commit: str | None = None,
        resolve: str | None = None,
        delete_branch: bool = False,
        engine: str | None = None,
        actor: str | None = None,
        message: str | None = None,
    ) -> MergeOutcome:
        """Merge the source of a proposal, exactly as it was approved, and end the proposal.

        A merge whose process was killed before it could end the proposal is found: the proposal
        ends as merged by that commit.

        Args:
            commit: The commit of the source that was reviewed; if the source has moved since, the
                merge is refused. As it is now when None.
            resolve: As for `Graph.merge`; so are `delete_branch` and `engine`.

        Raises:
            ProposalNotFoundError: the graph has no such proposal.
            InvalidInputError: it has ended.
            NotAllowedError: the actor may not merge, or approvals are missing. Nothing changed.
            StaleHeadError: the source is not at `commit`, or was written to meanwhile. Nothing
                changed.
            MergeConflictError: there are conflicts that `resolve` does not decide. Nothing changed.
        """
        from omnigraph.merge.run import Options

        who, proposal = self._begin(number, actor)
        transitions.require_open(proposal)
        theirs = self._require_source(proposal)
        head = theirs.head.commit_id
        _require_reviewed(proposal, commit, head)
        base = self._base(proposal, theirs)
        options = Options(
            None if resolve is None else require_text(resolve, "resolve"),
            engine=engine,
            expect_source=head,
            approvals=len(_counting(proposal, head, self._writers(proposal, theirs))),
        )
        why = require_message(message) or f"merge proposal {proposal.number}: {proposal.title}"
        if delete_branch:
            self._graph.branches.delete(proposal.source, dry_run=True)
        outcome = self._merge(proposal.source, proposal.target, options, who, why)
        landed = outcome.commit_id or self._earlier_merge(proposal, head)
        ending = Ending(who, self._clock.now(), CommitId(landed), head, base)
        self._records.change(proposal.number, lambda known: transitions.finish(known, ending))
        if not delete_branch:
            return outcome
        # Not before the proposal has ended: without its source, a merge could not be found again.
        # There is nothing left to merge, and a source that moved meanwhile stays.
        deletion = self._merge(
            proposal.source, proposal.target, options, who, why, delete_branch=True
        )
        warnings = (*outcome.warnings, *deletion.warnings)
        return replace(outcome, deleted_source=deletion.deleted_source, warnings=warnings)

    def _earlier_merge(self, proposal: Proposal, head: CommitId) -> CommitId:
        """The commit of the target that merged the source as it is now."""
        place = self._graph.full_snapshot(branch=proposal.target)
        find = self._manifest.history(place).find
        for commit in lineage.first_parents(place.head.commit_id, find):
            if commit.merged_parent == head:
                return commit.commit_id
        message = (
            f"branch {proposal.target} has all changes of {proposal.source}, but did not merge it"
        )
        hint = f"'omnigraph proposal close {proposal.number}' closes the proposal"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.PROPOSAL_EMPTY)

    def _begin(self, number: int, actor: str | None) -> tuple[str, Proposal]:
        self._graph.require_unblocked()
        who = self._require_actor(actor)
        return who, self._find(number, who)

    def _require_actor(self, actor: str | None) -> str:
        named = require_actor(actor) or self._actor
        if named is None:
            message = "a review needs an actor, and none was named"
            hint = "open the graph with actor=..., or set OMNIGRAPH_ACTOR"
            raise InvalidParameterError(message, hint=hint, name="actor")
        return named


def _counting(
    proposal: Proposal, head: CommitId | None, writers: Collection[str]
) -> tuple[Approval, ...]:
    """The approvals that count: of the source as it is, by others than those who wrote it."""
    return tuple(each for each in proposal.approvals_of(head) if each.actor not in writers)


def _require_reviewed(proposal: Proposal, commit: str | None, head: CommitId) -> None:
    if commit is None or CommitId.parse(require_text(commit, "commit")) == head:
        return
    message = f"branch {proposal.source} is at {head}, and {commit} was reviewed"
    hint = "look at what was written to it since"
    raise StaleHeadError(message, hint=hint, expected=commit, actual=head)


def _row_place(type_name: str | None, id_: str | None, property_: str | None) -> RowPlace | None:
    if type_name is None and id_ is None and property_ is None:
        return None
    if type_name is None or id_ is None:
        message = "a comment on a row names its type and its id"
        raise InvalidParameterError(message, hint="give both", name="id")
    return RowPlace(
        require_text(type_name, "type_name"),
        require_text(id_, "id"),
        None if property_ is None else require_text(property_, "property"),
    )
