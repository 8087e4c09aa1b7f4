"""Failures as documents: errors that become the same errors again, with all that they know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from omnigraph import errors
from omnigraph.documents.values import from_document, to_document
from omnigraph.errors import ErrorCode, InternalError, InvalidInputError, OmnigraphError

MEMBER: Final = "failure"
"""The member of a problem that has the attributes of the error."""


def to_failure(error: OmnigraphError) -> Any:
    """The attributes of an error: message, code, hint, details, notes and what its class adds."""
    return {name: _attribute(value) for name, value in vars(error).items()}


def _attribute(value: object) -> Any:
    if isinstance(value, dict):
        return {str(name): _attribute(item) for name, item in value.items()}
    try:
        return to_document(value)
    except InvalidInputError:
        # A detail that only people read.
        return str(value)


def from_problem(problem: Mapping[str, Any]) -> OmnigraphError:
    """The error that a problem describes; without its attributes, what the problem has of it."""
    name = str(problem.get("class", ""))
    kind = getattr(errors, name, None) if name.endswith("Error") else None
    if not (isinstance(kind, type) and issubclass(kind, OmnigraphError)):
        kind = InternalError
    attributes = problem.get(MEMBER)
    fields = {
        "message": str(problem.get("detail", "")),
        "hint": str(problem.get("hint", "")),
        # A server of an earlier release has the cause as its code.
        "code": _code(problem.get("cause", problem.get("code")), kind),
        "details": dict(problem.get("details") or {}),
        "__notes__": [str(note) for note in problem.get("notes") or ()],
    }
    if isinstance(attributes, Mapping):
        fields |= from_document(dict(attributes))
    if not fields["__notes__"]:
        del fields["__notes__"]
    # Its own arguments are those of whoever raised it first.
    error = kind.__new__(kind)
    error.args = (fields["message"],)
    error.__dict__.update(fields)
    return error


def _code(text: object, kind: type[OmnigraphError]) -> ErrorCode:
    try:
        return ErrorCode(str(text))
    except ValueError:
        # A newer server may have codes that this release does not know.
        return kind.default_code
