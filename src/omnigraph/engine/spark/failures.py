"""The one seam where failures of Spark become ours: one useful line, never a Java stack."""

from __future__ import annotations

import inspect
import json
import logging
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final, TypeAlias

import py4j  # type: ignore[import-untyped]
import pyarrow as pa
from py4j.protocol import (  # type: ignore[import-untyped]
    Py4JError,
    Py4JJavaError,
    Py4JNetworkError,
)
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.logger import PySparkLogger

from omnigraph import errors
from omnigraph.errors import (
    ErrorCode,
    InternalError,
    InvalidInputError,
    LimitExceededError,
    OmnigraphError,
    StorageError,
)

_Failure: TypeAlias = "PySparkException | Py4JError | pa.ArrowInvalid | EOFError | ConnectionError"

_KINDS: Final = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, OmnigraphError)
}
_DATA_EXCEPTION: Final = "22"
"""The class of SQL states that say: the values at hand do not fit what is done with them."""

_REPORTED: Final = re.compile(r"TaskFailedError: (\{.*\})\s*$", re.MULTILINE)
_ADVICE: Final = re.compile(r" (Use|If necessary set|Consider|Correct the value)\b.*")
_LABEL: Final = re.compile(r"^\[[A-Z_.]+\]\s*")
_JAVA_ERROR: Final = re.compile(r"^(?:Caused by: |: )(?:[\w$]+\.)+[\w$]+(?:: (?P<said>.*))?$", re.M)
_SQL_STATE: Final = re.compile(r"SQLSTATE: (\w{5})\b")
_STORAGE: Final = re.compile(
    r"No space left|Permission denied|Disk quota|java\.nio\.file\.|FileNotFoundException"
)
_UNFIT: Final = re.compile(
    r"""Python[ ]in[ ]worker[ ]has[ ]different[ ]version[^\n]*
      | Cannot[ ]run[ ]program[ ]"[^"]*python[^\n]*
      | No[ ]module[ ]named[ ]'omnigraph[^\n]*""",
    re.VERBOSE,
)
"""What is said of workers whose Python has another version, is missing, or lacks this package."""

_SAID_MAX: Final = 500
_TRANSLATING: Final = threading.local()


class TaskFailedError(Exception):
    """An error of ours on its way out of an executor: Spark keeps only the text of what is raised.

    Its text is one line of JSON, which `translating` makes the same error again.
    """


@contextmanager
def reporting() -> Iterator[None]:
    """Inside an executor: raise errors of ours in the form that reaches the driver whole."""
    try:
        yield
    except OmnigraphError as error:
        told = {
            "kind": type(error).__name__,
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "details": {name: str(value) for name, value in error.details.items()},
        }
        raise TaskFailedError(json.dumps(told)) from error


@contextmanager
def translating(action: str) -> Iterator[None]:
    """Re-raise what Spark raised as ours, with the original as the cause.

    Args:
        action: What failed then, unless it is a step of something else that is translated.

    Raises:
        InvalidInputError: a value does not fit its type, or the workers run an unfit Python.
        LimitExceededError: the result is larger than the driver may hold.
        StorageError: a table could not be read, or Spark's own disk failed.
        InternalError: Spark refused the plan, or lost a worker.
    """
    silence_loggers()
    whole = getattr(_TRANSLATING, "action", None)
    _TRANSLATING.action = whole or action
    try:
        yield
    # The last three: rows that stopped coming in the middle, because the other end is gone.
    except (PySparkException, Py4JError, pa.ArrowInvalid, EOFError, ConnectionError) as cause:
        raise _translated(_TRANSLATING.action, cause) from cause
    finally:
        _TRANSLATING.action = whole


def _translated(action: str, cause: _Failure) -> OmnigraphError:
    text = _text(cause)
    if (reported := _reported(text)) is not None:
        return reported
    if (unfit := _UNFIT.search(text)) is not None:
        return unfit_workers(f"Spark's workers run an unfit Python: {unfit[0][:_SAID_MAX]}")
    said = _useful_line(cause, text)
    if _sql_state(cause, text).startswith(_DATA_EXCEPTION):
        message = f"a computed value does not fit its type: {said}"
        hint = "sum fewer rows, or take the average"
        return InvalidInputError(message, hint=hint, code=ErrorCode.VALUE_OUT_OF_RANGE)
    if "spark.driver.maxResultSize" in text:
        message = f"{action} on Spark gave more rows than the driver may hold: {said}"
        return LimitExceededError(message, hint="ask for fewer rows, or use the DataFrame")
    if isinstance(cause, AnalysisException):
        message = f"Spark refused {action}: {said}"
        return InternalError(message, hint="this is a bug; please report it")
    if "Python worker exited unexpectedly" in text:
        message = f"{action} on Spark lost a worker process"
        return InternalError(message, hint="it may have run out of memory; use more partitions")
    gone = not isinstance(cause, PySparkException | Py4JError)
    if gone or isinstance(cause, Py4JNetworkError) or "OutOfMemoryError" in text:
        message = f"{action} lost Spark: {said}"
        return InternalError(message, hint="it may have run out of memory; start again with more")
    if _STORAGE.search(text):
        message = f"{action} on Spark failed: {said}"
        return StorageError(message, hint="try again; if it persists, check Spark's disks")
    message = f"{action} on Spark failed: {said}"
    return InternalError(message, hint="this is a bug; please report it")


def unfit_workers(message: str) -> InvalidInputError:
    """The error of a Spark whose workers cannot run what we send, with the setting to change."""
    python, release = "{}.{}".format(*sys.version_info), version("omnigraph")
    hint = (
        "before the session starts, set PYSPARK_PYTHON, or spark.pyspark.python with spark-submit, "
        f"to a Python {python} on the workers that has omnigraph {release}; "
        "spark.archives can bring one along"
    )
    return InvalidInputError(message, hint=hint, code=ErrorCode.WORKERS_MISMATCH)


def _text(cause: _Failure) -> str:
    # Py4J calls back into the JVM for the stack, which may no longer be there.
    try:
        return str(cause)
    except (Py4JError, OSError):
        return type(cause).__name__


def _reported(text: str) -> OmnigraphError | None:
    found = _REPORTED.search(text)
    if found is None:
        return None
    told = json.loads(found[1])
    kind = _KINDS[told["kind"]]
    return kind(told["message"], hint=told["hint"], code=ErrorCode(told["code"]), **told["details"])


def _sql_state(cause: _Failure, text: str) -> str:
    if isinstance(cause, PySparkException):
        return cause.getSqlState() or ""
    # What pyspark does not recognise comes as a Java stack, the innermost cause last.
    found = _SQL_STATE.findall(text)
    return found[-1] if found else ""


def _useful_line(cause: _Failure, text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(cause, PythonException):
        # The last line of a Python traceback that is not part of its drawing.
        said = next((line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)), "")
    elif isinstance(cause, Py4JJavaError):
        # The innermost cause comes last.
        found = [match["said"] for match in _JAVA_ERROR.finditer(text) if match["said"]]
        said = found[-1] if found else ""
    else:
        said = ""
    said = said or (lines[0] if lines else type(cause).__name__)
    return _ADVICE.sub("", _LABEL.sub("", said)).partition(" SQLSTATE:")[0][:_SAID_MAX]


class _OursAreRaised(logging.Filter):
    """Drops what pyspark logs about an error that is on its way to `translating`."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        return getattr(_TRANSLATING, "action", None) is None


class _Py4JIsRaised(logging.Filter):
    """Drops the errors of py4j, with their stacks: it raises them, and interrupts, as well."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_error = record.levelno >= logging.ERROR
        return not (is_error and Path(record.pathname).parent == _PY4J)


_FILTER: Final = _OursAreRaised()
_PY4J_FILTER: Final = _Py4JIsRaised()
_PY4J: Final = Path(py4j.__file__).parent


def silence_loggers() -> None:
    """Keep off standard error what pyspark and py4j log and raise."""
    # py4j logs under nobody's name too, by which the root logger begins to print all it gets.
    for name in ("", "py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_PY4J_FILTER)
    # pyspark logs errors that it also raises, with their Java stack, on standard error. Its own
    # constructor of loggers must make them: it gives them keyword arguments that others refuse.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addFilter(_FILTER)
