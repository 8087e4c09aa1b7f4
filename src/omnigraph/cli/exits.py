"""Exit codes: one table from error classes, total over the tree."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from functools import cache

from omnigraph import errors


class Exit(IntEnum):
    """The exit codes of the `omnigraph` command."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    INVALID = 3
    CONFLICT = 4
    NOT_FOUND = 5
    RECOVERY = 6
    INTERRUPTED = 130


@cache
def _exits() -> Mapping[type[errors.OmnigraphError], Exit]:
    """By the classes right below the root; a subclass has the code of its class."""
    # Imported here, with the rules that it needs: only a failure pays for them.
    from omnigraph.integrity.violations import IntegrityError

    return {
        errors.InvalidInputError: Exit.INVALID,
        errors.NotFoundError: Exit.NOT_FOUND,
        errors.AlreadyExistsError: Exit.CONFLICT,
        errors.ConflictError: Exit.CONFLICT,
        IntegrityError: Exit.INVALID,
        errors.MigrationRefusedError: Exit.INVALID,
        errors.StreamError: Exit.CONFLICT,
        errors.NotAllowedError: Exit.FAILED,
        errors.LimitExceededError: Exit.INVALID,
        errors.CancelledError: Exit.FAILED,
        errors.FormatError: Exit.FAILED,
        errors.RecoveryNeededError: Exit.RECOVERY,
        errors.OutcomeUnknownError: Exit.RECOVERY,
        errors.EmbeddingError: Exit.FAILED,
        errors.StorageError: Exit.FAILED,
        errors.InternalError: Exit.FAILED,
    }


def exit_code(error: errors.OmnigraphError) -> Exit:
    """The exit code for an error.

    >>> exit_code(errors.BranchNotFoundError("no branch x")).name
    'NOT_FOUND'
    """
    for kind in type(error).__mro__:
        if kind in _exits():
            return _exits()[kind]
    message = f"{type(error).__name__} has no exit code"
    raise errors.InternalError(message)
