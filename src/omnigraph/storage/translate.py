"""The one seam where Lance's and obstore's failures become ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from lance.commit import CommitConflictError
from obstore.exceptions import BaseError as ObjectStoreError

from omnigraph.errors import (
    RETRY_HINT,
    ErrorCode,
    NotFoundError,
    OmnigraphError,
    StorageError,
    TableConflictError,
)

_READ_ONLY: Final = "read-only file system"
_DENIED: Final = ("permission denied", _READ_ONLY)
_FORBIDDEN: Final = (
    "accessdenied",
    "403 forbidden",
    "401 unauthorized",
    "invalidaccesskeyid",
    "signaturedoesnotmatch",
    "expiredtoken",
)
_NO_BUCKET: Final = ("nosuchbucket", "containernotfound")
_WRONG_REGION: Final = ("permanentredirect", "without location", "authorizationheadermalformed")
_FULL: Final = ("no space left", "disk quota exceeded")
_NOT_FOUND: Final = "not found"
_INVALID_PATH: Final = "object with invalid path"
_DATA_FILE: Final = re.compile(r"/data/[0-9a-z]+\.lance\b")
_NO_CREDENTIALS: Final = (
    "no credentials",
    "credential provider",
    "metadata endpoint",
    "imds",
    "169.254.169.254",
    "metadata.google.internal",
    "account must be specified",
)
_AWS: Final = "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_REGION"
_GOOGLE: Final = "GOOGLE_APPLICATION_CREDENTIALS to the path of a key file"
_AZURE: Final = "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY"
_CREDENTIALS: Final = {"gs": _GOOGLE, "abfss": _AZURE, "abfs": _AZURE, "az": _AZURE}
"""The variables that have the credentials of a store, by the scheme of its URLs; S3's otherwise."""
_PREFIXES: Final = ("External error: ", "LanceError(IO): ", "Generic N/A error: ")
"""Prefixes of Arrow, Lance and its object store, in this order, that carry no information."""
_INTERRUPTED: Final = "External error: KeyboardInterrupt: "
"""What is left of a KeyboardInterrupt that is raised while a stream of Lance is read."""


@contextmanager
def translate_errors(action: str, where: str) -> Iterator[None]:
    """Re-raise errors of Lance and obstore as ours, with the original as the cause.

    Both libraries report most causes as OSError, ValueError or RuntimeError, so only conflicts are
    distinguished by class. The text only selects a better hint, never the protocol's next step:
    where that matters, callers look at storage (`Tables.exists`, `Refs.exists`). See
    docs/substrate.md, What Lance raises.
    """
    try:
        yield
    except OmnigraphError:
        raise
    except CommitConflictError as cause:
        message = f"{action} {where} lost a race"
        hint = RETRY_HINT
        raise TableConflictError(message, hint=hint, code=ErrorCode.TABLE_HEAD_MOVED) from cause
    # A number that does not fit Lance's, such as a negative version, is an OverflowError.
    except (OSError, ValueError, RuntimeError, OverflowError, ObjectStoreError) as cause:
        if str(cause) == _INTERRUPTED:
            raise KeyboardInterrupt from cause
        raise _to_error(action, where, cause) from cause
    except BaseException as cause:
        if not _is_panic(cause):
            raise
        message = f"{action} {where} failed: {_first_line(cause)}"
        hint = "this is a bug of Lance or obstore; start the process again, and report it"
        raise StorageError(message, hint=hint) from cause


def _is_panic(cause: BaseException) -> bool:
    """Whether Rust code panicked, which each library raises as a class of its own."""
    return type(cause).__name__ == "PanicException" and not isinstance(cause, Exception)


def _to_error(action: str, where: str, cause: Exception) -> OmnigraphError:
    text = str(cause).lower()
    reason = _first_line(cause)
    if any(mark in text for mark in _NO_BUCKET):
        message = f"{action} {where} failed: the bucket does not exist"
        hint = "check its name, or create the bucket"
        return NotFoundError(message, hint=hint, code=ErrorCode.BUCKET_NOT_FOUND)
    if any(mark in text for mark in _DENIED):
        message = f"{action} {where} was denied: {_READ_ONLY if _READ_ONLY in text else reason}"
        hint = "check the permissions of the directory"
        return StorageError(message, hint=hint, code=ErrorCode.STORAGE_DENIED)
    if any(mark in text for mark in _FORBIDDEN):
        message = f"{action} {where} was denied: {reason}"
        hint = f"check the credentials for the bucket: {_credentials_for(where)}"
        return StorageError(message, hint=hint, code=ErrorCode.STORAGE_DENIED)
    if any(mark in text for mark in _NO_CREDENTIALS):
        message = f"{action} {where} failed, because no credentials were found: {reason}"
        hint = f"set {_credentials_for(where)}"
        return StorageError(message, hint=hint, code=ErrorCode.STORAGE_DENIED)
    if any(mark in text for mark in _WRONG_REGION):
        message = f"{action} {where} failed: the bucket is in another region"
        return StorageError(message, hint="set AWS_REGION to the region of the bucket")
    if _INVALID_PATH in text:
        message = f"{action} {where} failed: {reason}"
        hint = "rename the object: parts of its key may not be empty, '.' or '..'"
        return StorageError(message, hint=hint)
    if any(mark in text for mark in _FULL):
        message = f"{action} {where} failed: no space is left"
        return StorageError(message, hint="free some space and try again")
    message = f"{action} {where} failed: {reason}"
    if _NOT_FOUND in text and _DATA_FILE.search(text):
        hint = "restore the file from a backup; 'omnigraph check' reports what else is missing"
        return StorageError(message, hint=hint)
    return StorageError(message, hint="try again; if it persists, check the storage")


def _credentials_for(where: str) -> str:
    return _CREDENTIALS.get(where.partition("://")[0], _AWS)


def _first_line(cause: BaseException) -> str:
    """The cause's text without obstore's debug dump and Lance's classes and source positions."""
    line = str(cause).strip().partition("\n")[0]
    for prefix in _PREFIXES:
        line = line.removeprefix(prefix)
    return line.partition(", /home/runner/")[0][:500]
