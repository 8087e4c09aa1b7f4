"""What Lance and obstore raise, and what we make of it."""

import errno
import os

import pytest
from lance.commit import CommitConflictError

from omnigraph.errors import (
    ErrorCode,
    InvalidInputError,
    NotFoundError,
    OmnigraphError,
    StorageError,
    TableConflictError,
)
from omnigraph.failpoints import SimulatedCrash
from omnigraph.storage.translate import translate_errors


class PanicException(BaseException):  # as each library of Rust code calls its own
    """A panic, as Python sees it."""


def translate(cause: BaseException) -> OmnigraphError:
    with pytest.raises(OmnigraphError) as caught, translate_errors("reading", "/data/t"):
        raise cause
    assert caught.value.__cause__ is cause
    assert "/data/t" in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    ("cause", "kind", "code", "hint"),
    [
        (CommitConflictError("x"), TableConflictError, ErrorCode.TABLE_HEAD_MOVED, "branch again"),
        (OSError("<Code>NoSuchBucket</Code>"), NotFoundError, ErrorCode.BUCKET_NOT_FOUND, "create"),
        (PermissionError(errno.EACCES, os.strerror(errno.EACCES)), StorageError,
         ErrorCode.STORAGE_DENIED, "permissions"),
        (OSError("403 Forbidden: <Code>AccessDenied</Code>"), StorageError,
         ErrorCode.STORAGE_DENIED, "credentials"),
        (OSError("403 Forbidden: <Code>SignatureDoesNotMatch</Code>"), StorageError,
         ErrorCode.STORAGE_DENIED, "AWS_SECRET_ACCESS_KEY"),
        (OSError("Received redirect without LOCATION"), StorageError,
         ErrorCode.STORAGE, "set AWS_REGION"),
        (OSError('Encountered object with invalid path: Path "a//b"'), StorageError,
         ErrorCode.STORAGE, "rename the object"),
        (OSError(errno.EROFS, os.strerror(errno.EROFS)), StorageError,
         ErrorCode.STORAGE_DENIED, "permissions"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), StorageError,
         ErrorCode.STORAGE, "space"),
        (OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)), StorageError,
         ErrorCode.STORAGE, "space"),
        (OSError("anything else"), StorageError, ErrorCode.STORAGE, "try again"),
        (ValueError("anything else"), StorageError, ErrorCode.STORAGE, "try again"),
        (RuntimeError("anything else"), StorageError, ErrorCode.STORAGE, "try again"),
        (OverflowError("negative"), StorageError, ErrorCode.STORAGE, "try again"),
        (PanicException("called unwrap() on a None"), StorageError, ErrorCode.STORAGE, "report it"),
    ],
    ids=lambda each: None if not isinstance(each, Exception) else str(each)[:20],
)  # fmt: skip
def test_a_foreign_error_becomes_ours_with_a_next_step(cause, kind, code, hint):
    error = translate(cause)

    assert type(error) is kind
    assert error.code is code
    assert hint in error.hint


def test_our_own_errors_pass_as_they_are():
    ours = InvalidInputError("wrong")
    with pytest.raises(InvalidInputError) as caught, translate_errors("reading", "/data/t"):
        raise ours
    assert caught.value is ours


@pytest.mark.parametrize("kind", [SimulatedCrash, KeyboardInterrupt, AssertionError, TypeError])
def test_crashes_and_bugs_are_not_dressed_up_as_storage_errors(kind):
    with pytest.raises(kind), translate_errors("reading", "/data/t"):
        raise kind


def test_an_interrupt_that_lance_failed_of_is_an_interrupt():
    cause = ValueError("External error: KeyboardInterrupt: ")
    with pytest.raises(KeyboardInterrupt), translate_errors("reading", "/data/t"):
        raise cause


def test_a_message_is_one_line_of_bounded_length():
    error = translate(OSError("first line\n" + "debug dump\n" * 1_000))
    assert "first line" in error.message
    assert "\n" not in error.message
    assert len(translate(OSError("x" * 100_000)).message) < 1_000
