"""The error tree: one class per reaction of the caller, one code per cause.

    OmnigraphError                     code, message, hint, details, retryable
    ├── InvalidInputError              fix the request                         (also ValueError)
    │   ├── DiagnosticsError           fix the .pg or .gq text                 (lang)
    │   ├── InvalidNameError
    │   ├── InvalidParameterError
    │   └── InvalidSchemaError         fix the catalog built in Python         (schema)
    ├── NotFoundError                  name something that exists              (also LookupError)
    │   ├── GraphNotFoundError
    │   ├── BranchNotFoundError
    │   ├── CommitLetGoError           read another commit
    │   ├── CommitNotFoundError
    │   ├── FeedGapError               take a new baseline
    │   ├── ProposalNotFoundError
    │   ├── TagNotFoundError
    │   └── TypeNotFoundError
    ├── AlreadyExistsError             choose another name, or open it
    ├── ConflictError                  read again and retry                    retryable
    │   ├── MergeConflictError         decide what conflicts                   (merge)
    │   ├── StaleHeadError             the branch moved; nothing became visible
    │   └── TableConflictError         a table moved under a staged write
    ├── IntegrityError                 fix the data                            (integrity)
    ├── StreamError                    name another stream, or another checkpoint
    ├── MigrationRefusedError          change the schema plan                  (schema)
    ├── NotAllowedError                ask for the right
    ├── LimitExceededError             ask for less
    ├── CancelledError                 nothing; the caller cancelled it
    ├── FormatError                    upgrade one side
    ├── RecoveryNeededError            run repair; we will not guess
    ├── OutcomeUnknownError            read before retrying
    ├── EmbeddingError                 try again, or embed later               retryable
    ├── StorageError                   wait, or call an operator               retryable
    └── InternalError                  report a bug

Errors with a payload are defined in the package that the last column names, and can also be
imported from here. An error knows nothing of HTTP or exit codes: `cli.exits` maps classes to exit
codes in one table.
"""

from __future__ import annotations

from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from omnigraph.integrity.violations import IntegrityError as IntegrityError
    from omnigraph.lang.diagnostics import DiagnosticsError as DiagnosticsError
    from omnigraph.merge.conflicts import MergeConflictError as MergeConflictError
    from omnigraph.schema.findings import InvalidSchemaError as InvalidSchemaError
    from omnigraph.schema.plan import MigrationRefusedError as MigrationRefusedError

RETRY_HINT: Final = "another write changed it: read the branch again, and retry"
"""The next step after a conflict with a concurrent write."""

_HOMES: Final = {
    "DiagnosticsError": "omnigraph.lang.diagnostics",
    "IntegrityError": "omnigraph.integrity.violations",
    "InvalidSchemaError": "omnigraph.schema.findings",
    "MergeConflictError": "omnigraph.merge.conflicts",
    "MigrationRefusedError": "omnigraph.schema.plan",
}
"""The errors that are defined elsewhere; type checkers see the imports above."""


if not TYPE_CHECKING:
    # A type checker would conclude that this module has every name.
    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            message = f"module 'omnigraph.errors' has no attribute {name!r}"
            raise AttributeError(message)
        return getattr(import_module(_HOMES[name]), name)


class ErrorCode(StrEnum):
    """Every cause we can name. Append-only: programs match on these words."""

    INVALID_INPUT = "invalid_input"
    INVALID_NAME = "invalid_name"
    INVALID_PARAMETER = "invalid_parameter"
    INVALID_SCHEMA = "invalid_schema"
    INVALID_URI = "invalid_uri"
    NOT_FOUND = "not_found"
    GRAPH_NOT_FOUND = "graph_not_found"
    BUCKET_NOT_FOUND = "bucket_not_found"
    BRANCH_NOT_FOUND = "branch_not_found"
    COMMIT_NOT_FOUND = "commit_not_found"
    VERSION_NOT_FOUND = "version_not_found"
    TYPE_NOT_FOUND = "type_not_found"
    ALREADY_EXISTS = "already_exists"
    GRAPH_EXISTS = "graph_exists"
    REF_EXISTS = "ref_exists"
    FOREIGN_DIRECTORY = "foreign_directory"
    CONFLICT = "conflict"
    STALE_HEAD = "stale_head"
    EXPECTED_VERSION_MISMATCH = "expected_version_mismatch"
    TABLE_HEAD_MOVED = "table_head_moved"
    SCHEMA_CHANGED = "schema_changed"
    PUBLISH_CONTENTION = "publish_contention"
    OBJECT_CHANGED = "object_changed"
    MIGRATION_REFUSED = "migration_refused"
    NOT_ALLOWED = "not_allowed"
    READ_ONLY = "read_only"
    LIMIT_EXCEEDED = "limit_exceeded"
    VALUE_OUT_OF_RANGE = "value_out_of_range"
    NOT_YET = "not_yet"
    ENGINE_UNAVAILABLE = "engine_unavailable"
    FORMAT = "format"
    FORMAT_TOO_NEW = "format_too_new"
    FORMAT_TOO_OLD = "format_too_old"
    RECOVERY_NEEDED = "recovery_needed"
    OUTCOME_UNKNOWN = "outcome_unknown"
    STORAGE = "storage"
    STORAGE_DENIED = "storage_denied"
    CORRUPTED = "corrupted"
    INTERNAL = "internal"
    INTEGRITY = "integrity"
    TABLE_BUSY = "table_busy"
    UNCOVERED_DRIFT = "uncovered_drift"
    STRAY_RESTORE = "stray_restore"
    MERGE_CONFLICTS = "merge_conflicts"
    FEED_GAP = "feed_gap"
    BRANCH_EXISTS = "branch_exists"
    BRANCH_IN_USE = "branch_in_use"
    MERGE_BASE_UNREADABLE = "merge_base_unreadable"
    NOT_INSTALLED = "not_installed"
    WORKERS_MISMATCH = "workers_mismatch"
    TAG_NOT_FOUND = "tag_not_found"
    TAG_EXISTS = "tag_exists"
    COMMIT_LET_GO = "commit_let_go"
    QUERY_TIMEOUT = "query_timeout"
    QUERY_MEMORY = "query_memory"
    QUERY_MAX_ROWS = "query_max_rows"
    CANCELLED = "cancelled"
    PURGE_REFUSED = "purge_refused"
    EMBEDDING_PROVIDER = "embedding_provider"
    EMBEDDING_VECTOR = "embedding_vector"
    EMBEDDING_KEY = "embedding_key"
    EMBEDDING_MODEL = "embedding_model"
    INVALID_POLICY = "invalid_policy"
    FORBIDDEN = "forbidden"
    REQUEST_TAKEN = "request_taken"
    REQUEST_MISMATCH = "request_mismatch"
    UNAUTHENTICATED = "unauthenticated"
    TOO_BUSY = "too_busy"
    UNSUPPORTED_MEDIA = "unsupported_media"
    BODY_TOO_LARGE = "body_too_large"
    STREAM = "stream"
    STREAM_MOVED = "stream_moved"
    STREAM_REPLACED = "stream_replaced"
    STREAM_REWOUND = "stream_rewound"
    STREAM_UNKNOWN = "stream_unknown"
    STREAM_RENAMED = "stream_renamed"
    PROPOSAL_NOT_FOUND = "proposal_not_found"
    PROPOSAL_ENDED = "proposal_ended"
    PROPOSAL_EMPTY = "proposal_empty"
    OWN_PROPOSAL = "own_proposal"
    RANGE_NOT_SATISFIABLE = "range_not_satisfiable"
    NOT_ACCEPTABLE = "not_acceptable"
    STREAM_GAP = "stream_gap"


class OmnigraphError(Exception):
    """Anything Omnigraph refuses or cannot do.

    Attributes:
        code: The cause, stable across releases.
        message: What is wrong: the thing, and the two facts that disagree.
        hint: The next step for the person who reads it.
        details: The facts of the message, for programs.
        retryable: Whether the same request may succeed if it is planned again.
    """

    default_code: ClassVar[ErrorCode] = ErrorCode.INTERNAL
    retryable: ClassVar[bool] = False

    def __init__(
        self, message: str, *, hint: str = "", code: ErrorCode | None = None, **details: object
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code or self.default_code
        self.details = details

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own pickling passes only `args`, which would lose code, hint and details on
        # the way out of a worker process. The attributes are passed too, since they hold notes.
        arguments = (type(self), self.message, self.hint, self.code, self.details)
        return _rebuild, arguments, vars(self)


def _rebuild(
    kind: type[OmnigraphError],
    message: str,
    hint: str,
    code: ErrorCode,
    details: dict[str, object],
) -> OmnigraphError:
    return kind(message, hint=hint, code=code, **details)


class InvalidInputError(OmnigraphError, ValueError):
    """The request itself is wrong. Nothing was read or written on its behalf."""

    default_code = ErrorCode.INVALID_INPUT


class InvalidNameError(InvalidInputError):
    """A branch, type or property name breaks the naming rules."""

    default_code = ErrorCode.INVALID_NAME


class InvalidParameterError(InvalidInputError):
    """A parameter is missing, unknown or of the wrong type."""

    default_code = ErrorCode.INVALID_PARAMETER


class NotFoundError(OmnigraphError, LookupError):
    """The thing named does not exist."""

    default_code = ErrorCode.NOT_FOUND


class GraphNotFoundError(NotFoundError):
    """No graph at that URI."""

    default_code = ErrorCode.GRAPH_NOT_FOUND


class BranchNotFoundError(NotFoundError):
    """The graph has no branch of that name."""

    default_code = ErrorCode.BRANCH_NOT_FOUND


class CommitNotFoundError(NotFoundError):
    """The lineage holds no commit of that id."""

    default_code = ErrorCode.COMMIT_NOT_FOUND


class CommitLetGoError(NotFoundError):
    """The commit is in the history, and it expired: what it read was removed."""

    default_code = ErrorCode.COMMIT_LET_GO


class FeedGapError(NotFoundError):
    """The feed cannot continue from that cursor: the commits after it are gone."""

    default_code = ErrorCode.FEED_GAP


class ProposalNotFoundError(NotFoundError):
    """The graph has no proposal of that number."""

    default_code = ErrorCode.PROPOSAL_NOT_FOUND


class TagNotFoundError(NotFoundError):
    """The graph has no tag of that name."""

    default_code = ErrorCode.TAG_NOT_FOUND


class TypeNotFoundError(NotFoundError):
    """The schema declares no type of that name."""

    default_code = ErrorCode.TYPE_NOT_FOUND


class AlreadyExistsError(OmnigraphError):
    """The name is taken. The existing object is untouched."""

    default_code = ErrorCode.ALREADY_EXISTS


class ConflictError(OmnigraphError):
    """Another writer changed what this was planned on. Nothing became visible."""

    default_code = ErrorCode.CONFLICT
    retryable = True


class StaleHeadError(ConflictError):
    """The branch no longer points at the commit the caller required."""

    default_code = ErrorCode.STALE_HEAD


class TableConflictError(ConflictError):
    """A table moved under a staged write; `details` has table_key, expected and actual."""

    default_code = ErrorCode.EXPECTED_VERSION_MISMATCH


class StreamError(OmnigraphError):
    """A stream's checkpoint and what the branch records of it disagree. Nothing was written."""

    default_code = ErrorCode.STREAM


class NotAllowedError(OmnigraphError):
    """The handle, the branch or the policy does not permit this."""

    default_code = ErrorCode.NOT_ALLOWED


class LimitExceededError(OmnigraphError):
    """The request is larger than a limit; the message names the limit and its value."""

    default_code = ErrorCode.LIMIT_EXCEEDED


class CancelledError(OmnigraphError):
    """The caller cancelled what it had asked for. Nothing was changed."""

    default_code = ErrorCode.CANCELLED


class FormatError(OmnigraphError):
    """The graph's format and this release do not match; `details` has both versions."""

    default_code = ErrorCode.FORMAT


class RecoveryNeededError(OmnigraphError):
    """An interrupted write left a state that recovery cannot resolve safely."""

    default_code = ErrorCode.RECOVERY_NEEDED


class OutcomeUnknownError(OmnigraphError):
    """The write may have landed; `details` has the commit id to look for before retrying."""

    default_code = ErrorCode.OUTCOME_UNKNOWN


class EmbeddingError(OmnigraphError):
    """The provider of an embedding model failed, or returned no usable vectors."""

    default_code = ErrorCode.EMBEDDING_PROVIDER
    retryable = True


class StorageError(OmnigraphError):
    """The storage under the graph failed, or holds data that cannot be read."""

    default_code = ErrorCode.STORAGE
    retryable = True


class InternalError(OmnigraphError):
    """An invariant of our own is broken: a bug."""

    default_code = ErrorCode.INTERNAL
