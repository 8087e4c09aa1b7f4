"""Problems: errors as RFC 9457 documents, with one table from error classes to statuses."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from starlette.requests import Request

from omnigraph import errors
from omnigraph.documents.failures import MEMBER, to_failure
from omnigraph.errors import ErrorCode, OmnigraphError
from omnigraph.formats.cells import plain_value

MEDIA_TYPE: Final = "application/problem+json"
_CONFLICT: Final = 409


@cache
def _statuses() -> Mapping[type[OmnigraphError], int]:
    """By class; a subclass without a line of its own has the status of its class."""
    return {
        errors.InvalidInputError: 400,
        errors.NotFoundError: 404,
        errors.CommitLetGoError: 410,
        errors.FeedGapError: 410,
        errors.AlreadyExistsError: 409,
        errors.ConflictError: 409,
        errors.StaleHeadError: 412,
        errors.IntegrityError: 422,
        errors.MigrationRefusedError: 422,
        errors.StreamError: 409,
        errors.NotAllowedError: 403,
        errors.LimitExceededError: 413,
        errors.CancelledError: 503,
        errors.FormatError: 501,
        errors.RecoveryNeededError: 503,
        errors.OutcomeUnknownError: 500,
        errors.EmbeddingError: 502,
        errors.StorageError: 503,
        errors.InternalError: 500,
    }


_BY_CODE: Final[Mapping[ErrorCode, int]] = {
    ErrorCode.UNAUTHENTICATED: 401,
    ErrorCode.REQUEST_MISMATCH: 422,
    ErrorCode.TOO_BUSY: 429,
    ErrorCode.NOT_ACCEPTABLE: 406,
    ErrorCode.UNSUPPORTED_MEDIA: 415,
    ErrorCode.RANGE_NOT_SATISFIABLE: 416,
    ErrorCode.NOT_INSTALLED: 501,
}
"""Causes with a status of their own."""


def status_of(error: OmnigraphError) -> int:
    """The status for an error.

    >>> status_of(errors.BranchNotFoundError("no branch x"))
    404
    """
    if error.code in _BY_CODE:
        return _BY_CODE[error.code]
    for kind in type(error).__mro__:
        if kind in _statuses():
            return _statuses()[kind]
    message = f"{type(error).__name__} has no status"
    raise errors.InternalError(message)


def code_of(error: OmnigraphError) -> str:
    """The code of a problem: `conflict` for every conflict, whose `cause` says which.

    >>> code_of(errors.TableConflictError("it moved")), code_of(errors.StaleHeadError("it moved"))
    ('conflict', 'stale_head')
    """
    is_conflict = isinstance(error, errors.ConflictError) and status_of(error) == _CONFLICT
    return ErrorCode.CONFLICT.value if is_conflict else error.code.value


def retry_after(error: OmnigraphError) -> int | None:
    """The seconds after which the same request may succeed, where that is known."""
    seconds = error.details.get("retry_after")
    if isinstance(seconds, int | float):
        return max(1, round(seconds))
    return 1 if status_of(error) == 503 and error.retryable else None


def request_id_of(request: Request) -> str:
    """The id of a request, which its log lines and problems have."""
    return str(request.scope.get("omnigraph.request_id", ""))


def to_problem(error: OmnigraphError, request_id: str, *, typed: bool = False) -> dict[str, Any]:
    """The document that describes an error to a program.

    Args:
        typed: Whether with all attributes of the error, for a client in Python.
    """
    details = dict(error.details)
    problem: dict[str, Any] = {
        "type": f"urn:omnigraph:problem:{error.code.value}",
        "title": _title(type(error)),
        "status": status_of(error),
        "detail": error.message,
        "error": error.message,
        "code": code_of(error),
        "cause": error.code.value,
        "hint": error.hint,
        "class": type(error).__name__,
        "retryable": error.retryable,
        "request_id": request_id,
        "notes": list(getattr(error, "__notes__", ())),
    }
    if isinstance(error, errors.MergeConflictError):
        del details["conflicts"]
        problem["conflict_count"] = details.pop("conflict_count")
        problem["merge_conflicts"] = [conflict.to_json() for conflict in error.conflicts]
    if isinstance(error, errors.IntegrityError):
        problem["violations"] = details.pop("violations")
    if isinstance(error, errors.TableConflictError):
        fields = ("table_key", "expected", "actual")
        problem["manifest_conflict"] = {name: details.get(name) for name in fields}
    if isinstance(error, errors.DiagnosticsError):
        spans = [[each.span.start, each.span.end] for each in error.diagnostics]
        problem["spans"] = spans
    if typed:
        problem[MEMBER] = to_failure(error)
    return {**problem, "details": _plain(details)}


def _plain(details: Mapping[str, object]) -> Any:
    return json.loads(json.dumps(plain_value(details), default=str))


def _title(kind: type[OmnigraphError]) -> str:
    """The name of an error class in words: `BranchNotFoundError` is "branch not found"."""
    name = kind.__name__.removesuffix("Error")
    words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)
    return words.strip()
