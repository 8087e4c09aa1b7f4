"""Spark Connect: sessions of a Spark that another process runs, reached by `sc://`.

Such a session has no SparkContext. Frames, plans and tasks are the same as on a classic one; what
differs is here, in `cores`, and in `groups`.
"""

from __future__ import annotations

import socket
from typing import Final
from urllib.parse import urlsplit

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from omnigraph.engine.spark.packing import FOLDER, PYTHON
from omnigraph.errors import ErrorCode, InvalidInputError

SCHEME: Final = "sc://"
PYTHON_OPTION: Final = "spark.sql.execution.pyspark.python"
"""The Python of the workers of one session."""

_PACKAGE: Final = "pyspark.sql.connect."
_PORT: Final = 15002
"""Where a server listens unless it is configured otherwise."""

_ANSWER_SECONDS_MAX: Final = 5


def is_connect(value: object) -> bool:
    """Whether a session, or a DataFrame, is one of Spark Connect."""
    return type(value).__module__.startswith(_PACKAGE)


def open_remote(address: str, place: str) -> SparkSession:
    """The session of this process on a server of Spark Connect.

    Args:
        address: As in `SparkSession.builder.remote`.
        place: Where the caller wrote the address.
    """
    _require_client()
    _require_server(address, place)
    try:
        return SparkSession.builder.remote(address).getOrCreate()
    except (PySparkException, RuntimeError) as cause:
        message = f"{address} gave no session: {str(cause).partition(chr(10))[0]}"
        raise _unavailable_error(message, place) from cause


def use_archive(session: SparkSession, archive: str) -> None:
    """Make the workers of a session run the Python in an archive of `omnigraph spark pack`."""
    try:
        session.addArtifacts(f"{archive}#{FOLDER}", archive=True)
    except (PySparkException, OSError, RuntimeError) as cause:
        message = f"{archive} could not be sent to Spark: {str(cause).partition(chr(10))[0]}"
        hint = "check the path; omnigraph spark pack writes such an archive"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE) from cause
    session.conf.set(PYTHON_OPTION, PYTHON)


def _require_client() -> None:
    try:
        import grpc  # type: ignore[import-untyped]  # noqa: F401
        import grpc_status  # type: ignore[import-untyped]  # noqa: F401
    except ImportError as cause:
        message = f"Spark Connect needs a package that is not installed: {cause.name}"
        hint = "pip install 'omnigraph[connect]'"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE) from cause


def _require_server(address: str, place: str) -> None:
    """Refuse a server that does not answer at once: Spark's client would try for minutes."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or _PORT
    except ValueError as cause:
        raise _unavailable_error(_no_address(address), place) from cause
    if not host:
        raise _unavailable_error(_no_address(address), place)
    try:
        socket.create_connection((host, port), timeout=_ANSWER_SECONDS_MAX).close()
    except OSError as cause:
        message = f"no server of Spark Connect answers at {host}:{port}: {cause.strerror or cause}"
        raise _unavailable_error(message, place) from cause


def _no_address(address: str) -> str:
    return f"{address[:200]!r} is not a valid address of a Spark Connect server"


def _unavailable_error(message: str, place: str) -> InvalidInputError:
    hint = f"write sc://host:{_PORT} in {place}, and check that the server runs"
    return InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)
