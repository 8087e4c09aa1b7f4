"""Spark Connect: how to tell what belongs to it, which we cannot use yet."""

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
        found = f"this {type(value).__name__} is one of Spark Connect"
        raise connect_unsupported(found)


def connect_unsupported(found: str) -> InvalidInputError:
    """The error of whoever reaches Spark through Connect.

    Args:
        found: What says so.
    """
    message = f"{found}, through which Omnigraph does not work yet"
    hint = (
        "make the session with SparkSession.builder.master(…), not remote(…), and unset "
        "SPARK_REMOTE; or use the local engine"
    )
    return InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)
