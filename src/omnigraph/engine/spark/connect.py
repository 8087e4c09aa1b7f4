"""Spark Connect: recognition of its sessions and frames, which are not supported yet."""

from __future__ import annotations

from typing import Final

from omnigraph.errors import ErrorCode, InvalidInputError

_PACKAGE: Final = "pyspark.sql.connect."


def require_classic(value: object) -> None:
    """Refuse a session, or a DataFrame, of Spark Connect.

    Raises:
        InvalidInputError: it is one. Nothing was read or started.
    """
    if type(value).__module__.startswith(_PACKAGE):
        reason = f"this {type(value).__name__} is one of Spark Connect"
        raise connect_error(reason)


def connect_error(reason: str) -> InvalidInputError:
    """The error of a caller that uses Spark Connect.

    Args:
        reason: What shows that it does.
    """
    message = f"{reason}, through which Omnigraph does not work yet"
    hint = (
        "make the session with SparkSession.builder.master(…), not remote(…), and unset "
        "SPARK_REMOTE; or use the local engine"
    )
    return InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)
