"""The streams that write to a graph: `graph.streams`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from omnigraph.errors import ErrorCode, NotFoundError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.commits import OperationKind
from omnigraph.model.streams import StreamRecord, require_stream_name

# What a signature names need not be imported to read a graph.
if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.transaction.commit import Transactions
    from omnigraph.transaction.view import View
    from omnigraph.transaction.writes import WritePlan, WriteRequest


class StreamList:
    """The streams that write to a graph: `graph.streams`."""

    def __init__(
        self,
        graph: Graph,
        transactions: Callable[[], Transactions],
        request: Callable[[OperationKind, str | None, str | None, str | None], WriteRequest],
    ) -> None:
        self._graph = graph
        self._transactions = transactions
        self._request = request

    def list(self, *, branch: str | None = None) -> tuple[StreamRecord, ...]:
        """The newest batch of each stream that has written to a branch, by the streams' names.

        Args:
            branch: The handle's own when None.

        Raises:
            BranchNotFoundError: the graph has no such branch.
        """
        streams = self._graph.full_snapshot(branch=branch).streams
        return tuple(streams[name] for name in sorted(streams))

    def forget(self, name: str, *, branch: str | None = None, actor: str | None = None) -> str:
        """Remove the record of a stream that has ended for good, in a commit of its own.

        What the stream wrote stays. A stream that is started under the name is another one.

        Returns:
            The commit.

        Raises:
            NotFoundError: no stream of that name has written to the branch.
            NotAllowedError: the handle is on a point of history, or was opened read-only.
        """
        name = require_stream_name(name)
        request = self._request(OperationKind.LOAD, branch, actor, f"forget the stream {name}")
        landed = self._transactions().run(request, _Forgetting(name).plan)
        assert landed.commit is not None, "it makes a commit in any case"
        return landed.commit.commit_id


class _Forgetting:
    def __init__(self, name: str) -> None:
        self._name = name

    def plan(self, view: View) -> WritePlan[None]:
        from omnigraph.manifest.drafts import ForgetStream
        from omnigraph.transaction.writes import WritePlan

        streams = view.snapshot.streams
        if self._name not in streams:
            message = f"branch {view.snapshot.branch} has no stream {self._name}"
            hint = did_you_mean(self._name, streams) or "see graph.streams.list()"
            raise NotFoundError(message, hint=hint, code=ErrorCode.NOT_FOUND)
        return WritePlan(None, records=(ForgetStream(self._name),))
