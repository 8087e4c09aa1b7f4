"""The options of streams: of `spark.readStream` and of `df.writeStream`.

What they are parsed to are small values that pickle: Spark passes them to executors.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Self

from omnigraph.choices import Op
from omnigraph.connector.options import (
    by_name,
    read_access,
    read_flag,
    read_number,
    read_request,
)
from omnigraph.errors import ErrorCode, InvalidInputError, InvalidParameterError
from omnigraph.limits import CONNECTOR_PARALLELISM
from omnigraph.manifest.reader import Manifest
from omnigraph.manifest.schemas import Catalogs
from omnigraph.model.arguments import require_choice
from omnigraph.model.identities import TypeIdentity
from omnigraph.model.names import MAIN, BranchName
from omnigraph.policy.authority import Access
from omnigraph.schema.catalog import SchemaType
from omnigraph.storage.store import Store
from omnigraph.streams.batches import StreamSettings
from omnigraph.streams.checkpoints import Checkpoint
from omnigraph.transaction.writes import WriteRequest

_READ: Final = (
    "graph", "path", "branch", "changes", "after", "maxCommits", "ops", "parallelism",
    "actor", "policy",
)  # fmt: skip
_WRITE: Final = (
    "graph", "path", "router", "envelope", "branch", "mode", "onError", "rejects", "stream",
    "onDuplicate", "orderBy", "ignoreUnknown", "embed", "adopt", "actor", "message", "policy",
    "checkpointLocation", "queryName",
)  # fmt: skip


def is_of_stream(options: Mapping[str, str]) -> bool:
    """Whether options can only be those of a stream."""
    return not by_name(options).keys().isdisjoint({"changes", "checkpointlocation"})


def require_stream_sources() -> None:
    """Refuse a Spark whose sources and sinks in Python lack what streams need."""
    if find_spec("pyspark.sql.streaming.datasource") is None:
        message = "streams by format('omnigraph') need Spark 4.2"
        hint = "upgrade pyspark; graph.ingest writes streams with any that is supported"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)


def only_of_streams_error() -> InvalidInputError:
    """The error for `spark.read` with options of a stream."""
    message = "changes are read as a stream"
    hint = "use spark.readStream, with a trigger of availableNow to read what there is now"
    return InvalidInputError(message, hint=hint)


@dataclass(frozen=True, slots=True)
class FeedType:
    """The type whose changes are read, as it is when a stream starts."""

    type: SchemaType
    identity: TypeIdentity


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """Which changes a stream reads.

    Options:
        graph, branch: Whose commits; main's by default.
        path: The name of a type, the argument of `load`; all types without it.
        after: The commit, or the tag of one, after which the stream starts, or `now`; without it,
            with the first commit. A checkpoint that exists says where to continue instead.
        maxCommits: How many commits a micro-batch has at most.
        ops: Only these of `insert`, `update` and `delete`, joined by commas.
        parallelism: How many tasks to aim at.
        actor, policy: Who reads, and the file of the policy that says what they may.
    """

    graph: str
    branch: BranchName
    access: Access
    only: FeedType | None
    after: str | None
    commits_max: int | None
    ops: frozenset[Op]
    parallelism: int

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> Self:
        """Validate the options of a stream of changes."""
        given = _require_known(options, _READ)
        if not read_flag(given, "changes"):
            message = "a stream reads the changes of a graph, and the option changes is not true"
            raise InvalidParameterError(message, hint='.option("changes", "true")', name="changes")
        store = Store.open(given["graph"])
        branch, access = BranchName.parse(given.get("branch", MAIN)), read_access(given)
        authority = access.authority(store.root.uri)
        with authority.conceal(branch):
            authority.require_visible(branch)
            now = Manifest(store).current(branch)
        only = None
        if (name := given.get("path")) is not None:
            type_ = Catalogs(store.objects).of(now.schema_digest).type_named(name)
            authority.require_readable(now, [type_.table_key])
            only = FeedType(type_, now.pin(type_.table_key).identity)
        words = given.get("ops")
        ops = None if words is None else [word.strip() for word in words.split(",")]
        return cls(
            store.root.uri,
            branch,
            access,
            only,
            given.get("after"),
            read_number(given, "maxcommits"),
            frozenset(Op) if ops is None else frozenset(_parse_op(word) for word in ops),
            read_number(given, "parallelism") or CONNECTOR_PARALLELISM,
        )


def _parse_op(word: str) -> Op:
    return require_choice(word, Op, "ops")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """Where and how a stream is written.

    Attributes:
        write: The commits that batches make.
        settings: As those of `graph.ingest`, under the names of its arguments.
        access: Who writes, and under which policy.
    """

    graph: str
    write: WriteRequest
    settings: StreamSettings
    checkpoint: Checkpoint
    access: Access


def parse_sink(options: Mapping[str, str]) -> SinkOptions:
    """Validate the options of a stream that is written."""
    given = _require_known(options, _WRITE)
    if "checkpointlocation" not in given:
        message = "the option checkpointLocation is missing, which says what a batch is"
        hint = 'give it to the stream: .option("checkpointLocation", …)'
        raise InvalidParameterError(message, hint=hint, name="checkpointLocation")
    checkpoint = Checkpoint.parse(given["checkpointlocation"])
    store = Store.open(given["graph"])
    write, access = read_request(given), read_access(given)
    authority = access.authority(store.root.uri)
    # Before anything is looked up: a refusal must not say what is there.
    authority.admit(write)
    with authority.conceal(write.branch):
        now = Manifest(store).current(write.branch)
    rejects = given.get("rejects")
    settings = StreamSettings.parse(
        given.get("stream", checkpoint.location),
        type_name=given.get("path"),
        router=given.get("router"),
        envelope=given.get("envelope"),
        mode=given.get("mode", "append"),
        on_error=given.get("onerror", "fail"),
        rejects=None if rejects is None else Path(rejects),
        ignore_unknown=read_flag(given, "ignoreunknown"),
        embed=given.get("embed", "auto"),
        adopts=read_flag(given, "adopt"),
        on_duplicate=given.get("onduplicate"),
        order_by=given.get("orderby"),
    )
    if isinstance(settings.of, str):
        Catalogs(store.objects).of(now.schema_digest).type_named(settings.of)
    return SinkOptions(store.root.uri, write, settings, checkpoint, access)


def _require_known(options: Mapping[str, str], known: tuple[str, ...]) -> dict[str, str]:
    given = by_name(options)
    unknown = sorted(given.keys() - {name.lower() for name in known})
    if unknown:
        message = f"{unknown[0]!r} is not a valid option"
        raise InvalidParameterError(message, hint=f"options are {', '.join(known)}")
    if "graph" not in given:
        message = "the option graph is missing"
        raise InvalidParameterError(message, hint='.option("graph", "graph.omni")')
    return given
