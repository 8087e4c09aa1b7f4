"""Authority: what the actor of a handle may do. Without a policy, everything."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from omnigraph.clock import is_ulid
from omnigraph.errors import (
    BranchNotFoundError,
    CommitNotFoundError,
    ErrorCode,
    NotAllowedError,
    TagNotFoundError,
)
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.model.arguments import require_path
from omnigraph.model.commits import RESERVED_ACTOR_PREFIX
from omnigraph.model.names import BranchName
from omnigraph.policy.actions import ACTIONS_OF_WRITES, Action
from omnigraph.policy.questions import AccessQuestion, Resource
from omnigraph.policy.sight import EVERYTHING, Sight
from omnigraph.schema.stored_queries import STORED_QUERY

# Most handles have no policy, and need not import what reads and answers one.
if TYPE_CHECKING:
    from omnigraph.engine.protocol import Data
    from omnigraph.model.tables import TableKey
    from omnigraph.policy.policies import AccessPolicy
    from omnigraph.storage.tables import Table
    from omnigraph.transaction.view import View
    from omnigraph.transaction.writes import WritePlan, WriteRequest

POLICY_VARIABLE: Final = "OMNIGRAPH_POLICY"
ACTOR_VARIABLE: Final = "OMNIGRAPH_ACTOR"
_SUFFIX: Final = ".omni"
_UNREAD: Final = (
    Action.READ,
    Action.MUTATE,
    Action.LOAD,
    Action.SCHEMA_APPLY,
    Action.MAINTAIN,
    Action.ADMIN,
)
"""To read, and what can be done without reading; all else is done to what one may read."""
_CONCEALED: Final = (BranchNotFoundError, CommitNotFoundError, TagNotFoundError)


@dataclass(frozen=True, slots=True)
class Authority:
    """What one actor may do in one graph.

    A branch that an actor may not read does not exist for it.

    Attributes:
        policy: None where everything is allowed.
        graph: The graph as rules name it.
        actor: None for an actor without a name.
    """

    policy: AccessPolicy | None = None
    graph: str = ""
    actor: str | None = None

    @classmethod
    def open(
        cls,
        uri: str,
        policy: AccessPolicy | str | os.PathLike[str] | None,
        actor: str | None,
        graph: str | None = None,
    ) -> Authority:
        """The authority of an actor under a policy, or under that of `$OMNIGRAPH_POLICY`.

        Args:
            graph: The graph as rules name it; when None, the last part of its URI without `.omni`.
        """
        if policy is None:
            policy = os.environ.get(POLICY_VARIABLE) or None
        if policy is None:
            return cls()
        from omnigraph.policy.policies import AccessPolicy

        if not isinstance(policy, AccessPolicy):
            policy = AccessPolicy.read(require_path(policy, "policy"))
        name = graph_name(uri) if graph is None else graph
        return cls(policy, name, actor or os.environ.get(ACTOR_VARIABLE) or None)

    @property
    def is_limited(self) -> bool:
        """Whether there is a policy."""
        return self.policy is not None

    def acting_as(self, actor: str | None) -> Authority:
        """The authority of another actor; of this one when None."""
        return self if actor is None else replace(self, actor=actor)

    def allows(
        self,
        action: Action,
        branch: str | None = None,
        *,
        type_name: str | None = None,
        query_name: str | None = None,
        source: str | None = None,
        approvals: int = 0,
    ) -> bool:
        """Whether the actor may do something to the graph, a branch, a type or a stored query.

        Args:
            source: The branch that is merged, and `approvals` how many reviewers approved it.
        """
        if self.policy is None:
            return True
        resource = Resource(self.graph, branch, type_name, query_name)
        return self._refusal((action,), resource, source, approvals) is None

    def require(
        self,
        *actions: Action,
        branch: str | None = None,
        types: Iterable[str] = (),
        source: str | None = None,
        approvals: int = 0,
    ) -> None:
        """Refuse what the policy does not allow.

        Args:
            actions: One of these must be allowed.
            branch: The branch that it is done to; the graph itself when None.
            types: The types on the branch that it is done to.
            source: The branch that is merged, or that a new branch starts at.
            approvals: How many reviewers approved what is merged.
        """
        if self.policy is None:
            return
        for type_name in (None, *types):
            resource = Resource(self.graph, branch, type_name)
            if refusal := self._refusal(actions, resource, source, approvals):
                raise refusal

    def approvals_needed(self, branch: str) -> int:
        """How many reviewers have to approve what is merged into a branch."""
        return 0 if self.policy is None else self.policy.approvals_needed(branch)

    def _refusal(
        self,
        actions: Sequence[Action],
        resource: Resource,
        source: str | None,
        approvals: int,
    ) -> NotAllowedError | None:
        """Why none of the actions is allowed there; None if one is."""
        assert self.policy is not None, "a decision needs a policy"
        questions = [
            AccessQuestion(self.actor, action, resource, source, approvals) for action in actions
        ]
        answers = [self.policy.answer(question) for question in questions]
        if any(answer.is_allowed for answer in answers):
            return None
        who = self.actor or "an actor without a name"
        return NotAllowedError(
            f"permission denied: {who} cannot {actions[0]} {resource}: {answers[0].why}",
            # Not where it is: who is refused may be a client of a server.
            hint=f"ask the owner of the policy, {Path(self.policy.rules.name).name}",
            code=ErrorCode.FORBIDDEN,
            action=str(actions[0]),
            actor=self.actor,
            branch=resource.branch,
            type=resource.type_name,
        )

    def admit(
        self,
        request: WriteRequest,
        *,
        changes: Collection[str] = (),
        reads: Collection[str] = (),
    ) -> None:
        """See `WritePolicy.admit`."""
        if self.policy is None or _is_own(request):
            return
        source = None if request.source is None else request.source.branch
        writing = self.acting_as(request.actor)
        writing.require(
            *ACTIONS_OF_WRITES[request.kind],
            branch=request.branch,
            types=changes,
            source=source,
            approvals=request.approvals,
        )
        if reads:
            writing.require(Action.READ, branch=request.branch, types=sorted(reads))

    def sight(self, *branches: str) -> Sight:
        """What the actor may see: the types that it may read on all of these branches."""
        if self.policy is None:
            return EVERYTHING

        @cache
        def sees(name: str) -> bool:
            return all(self.allows(Action.READ, branch, type_name=name) for branch in branches)

        return Sight(sees)

    def sight_of(self, request: WriteRequest) -> Sight:
        """What the actor of a write may see of its result."""
        return self.acting_as(request.actor).sight(request.branch)

    def admit_result(
        self, request: WriteRequest, plan: WritePlan[Any], before: View, after: View
    ) -> None:
        """See `WritePolicy.admit_result`.

        Rules name types, so a type that gets another name is under other rules from then on.
        """
        if _is_own(request):
            return
        from omnigraph.policy.stored_queries import admit_texts

        writing = self.acting_as(request.actor)
        if renamed := sorted(plan.renamed_types):
            writing.require(Action.READ, branch=request.branch, types=renamed)
        admit_texts(writing, request, plan.touched_types, before, after)

    def require_readable(self, snapshot: Snapshot, tables: Iterable[TableKey]) -> None:
        """Refuse to read rows of a type that the policy keeps from the actor."""
        if self.policy is not None:
            types = sorted({key.type_name for key in tables})
            self.require(Action.READ, branch=snapshot.branch, types=types)

    def may_invoke(self, snapshot: Snapshot, query_name: str) -> bool:
        """Whether the actor may see and run a stored query: by its name, or since it reads all."""
        branch = snapshot.branch
        return self.allows(Action.INVOKE, branch, query_name=query_name) or self.allows(
            Action.READ, branch, type_name=STORED_QUERY
        )

    def admit_invocation(
        self,
        snapshot: Snapshot,
        query_name: str,
        tables: Iterable[TableKey],
        *,
        is_of_main: Callable[[], bool],
    ) -> None:
        """Refuse what a stored query reads, unless the actor may invoke it by its name.

        Args:
            is_of_main: Whether main has the same text under that name now. What others may have
                written elsewhere, or what was replaced since, runs with the rights of the actor.
        """
        try:
            self.require_readable(snapshot, tables)
        except NotAllowedError as refusal:
            if not self.allows(Action.INVOKE, snapshot.branch, query_name=query_name):
                raise
            if is_of_main():
                return
            note = (
                f"you may invoke {query_name} with the text that it has on main, not with this one"
            )
            refusal.add_note(note)
            raise

    def limit(self, snapshot: Snapshot, data: Data) -> Data:
        """The data of a snapshot, of which only tables that the actor may read can be opened."""
        if self.policy is None:
            return data

        def open_table(key: TableKey) -> Table:
            self.require_readable(snapshot, [key])
            return data.table(key)

        return replace(data, table=open_table)

    @contextmanager
    def conceal(self, text: str) -> Iterator[None]:
        """Make what may not be read look like what does not exist.

        Args:
            text: How the caller named a branch, a commit or a tag. The error says no more: the
                usual hints name what exists, and so what the actor may not see.
        """
        try:
            yield
        except _CONCEALED:
            if self.policy is None:
                raise
            kind = CommitNotFoundError if is_ulid(text.upper()) else BranchNotFoundError
            message = f"branch, commit or tag {text[:200]} does not exist"
            hint = "it does not exist, or you may not read it"
            raise kind(message, hint=hint) from None

    def require_visible(self, branch: BranchName) -> None:
        """Raise what `conceal` waits for if the actor may not read a branch.

        Reading a commit needs the right to read its branch, however the commit is named.
        """
        if not self.allows(Action.READ, branch):
            message = f"permission denied: {self.actor} cannot read branch {branch}"
            raise BranchNotFoundError(message)

    def has_rights(self, branches: Iterable[BranchName]) -> bool:
        """Whether the actor may do anything at all in a graph that has these branches."""
        return any(
            self.allows(action, branch) for branch in (None, *branches) for action in _UNREAD
        )

    def visible(self, branches: Iterable[BranchName]) -> tuple[BranchName, ...]:
        """Those of the branches that the actor may read."""
        return tuple(name for name in branches if self.allows(Action.READ, name))


def _is_own(request: WriteRequest) -> bool:
    """Whether a write is Omnigraph's own: recovery, or the maintenance that follows a commit."""
    return request.actor is not None and request.actor.startswith(RESERVED_ACTOR_PREFIX)


def graph_name(uri: str) -> str:
    """A graph as rules name it, unless they are told otherwise.

    >>> graph_name("s3://lake/world.omni")
    'world'
    """
    return PurePosixPath(uri).name.removesuffix(_SUFFIX)


UNLIMITED: Final = Authority()
"""The authority of everybody in a graph without a policy."""


@dataclass(frozen=True, slots=True)
class Access:
    """Who acts, and the file of the policy that binds them: what other processes can be sent.

    A process that has it reads the policy as it is then.
    """

    policy: str | None = None
    actor: str | None = None

    @classmethod
    def parse(cls, policy: str | None, actor: str | None) -> Access:
        """What a caller named, or else `$OMNIGRAPH_POLICY` and `$OMNIGRAPH_ACTOR`."""
        policy = policy or os.environ.get(POLICY_VARIABLE) or None
        if policy is None:
            return cls(None, actor)
        return cls(str(Path(policy).absolute()), actor or os.environ.get(ACTOR_VARIABLE) or None)

    def authority(self, uri: str) -> Authority:
        """What they may do in a graph."""
        return UNLIMITED if self.policy is None else Authority.open(uri, self.policy, self.actor)
