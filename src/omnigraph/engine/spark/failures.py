"""Translation of Spark's failures into our errors: one useful line, never a Java stack."""

from __future__ import annotations

import inspect
import json
import logging
import re
import sys
import threading
import warnings
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
from pyspark.sql.utils import is_remote

from omnigraph import errors
from omnigraph.engine.results import out_of_range_error
from omnigraph.engine.spark.connect import PYTHON_OPTION
from omnigraph.engine.spark.packing import FOLDER, PYTHON
from omnigraph.errors import (
    ErrorCode,
    InternalError,
    InvalidInputError,
    LimitExceededError,
    OmnigraphError,
    StorageError,
)

_Failure: TypeAlias = "PySparkException | Py4JError | pa.ArrowInvalid | EOFError | ConnectionError"

SPARK_FAILURES: Final[tuple[type[Exception], ...]] = (PySparkException, Py4JError)
"""What Spark raises: its own errors, and those of Java that it does not know."""

_KINDS: Final = {
    name: kind
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, OmnigraphError)
}
_DATA_EXCEPTION: Final = "22"
"""The class of SQL states for values that do not fit an operation."""

_TASK_REPORT: Final = re.compile(r"TaskFailedError: (\{.*\})\s*$", re.MULTILINE)
_ADVICE: Final = re.compile(r" (Use|If necessary set|Consider|Correct the value)\b.*")
_LABEL: Final = re.compile(r"^\[[A-Z_.]+\]\s*")
_JAVA_ERROR: Final = re.compile(
    r"^(?:Caused by: |: )(?:[\w$]+\.)+[\w$]+(?:: (?P<reason>.*))?$", re.M
)
_SQL_STATE: Final = re.compile(r"SQLSTATE: (\w{5})\b")
_STORAGE: Final = re.compile(
    r"No space left|Permission denied|Disk quota|java\.nio\.file\.|FileNotFoundException"
)
_UNFIT_PYTHON: Final = re.compile(
    r"""Python[ ]in[ ]worker[ ]has[ ]different[ ]version[^\n]*
      | Cannot[ ]run[ ]program[ ]"[^"]*python[^\n]*
      | No[ ]module[ ]named[ ]'omnigraph[^\n]*""",
    re.VERBOSE,
)
"""Errors of workers whose Python has another version, is missing, or lacks this package."""

_REASON_MAX: Final = 500
_TRANSLATION: Final = threading.local()


class TaskFailedError(Exception):
    """An error of ours raised by an executor: Spark keeps only the text of an exception.

    Its text is one line of JSON, from which `translate_errors` restores the error.
    """


@contextmanager
def report_errors() -> Iterator[None]:
    """Inside an executor: raise our errors in a form that reaches the driver complete."""
    try:
        yield
    except OmnigraphError as error:
        report = {
            "kind": type(error).__name__,
            "code": error.code,
            "message": error.message,
            "hint": error.hint,
            "details": {name: str(value) for name, value in error.details.items()},
        }
        raise TaskFailedError(json.dumps(report)) from error


@contextmanager
def translate_errors(action: str) -> Iterator[None]:
    """Re-raise the errors of Spark as ours, with the original as the cause.

    Args:
        action: The name of what failed; that of the outermost block where blocks are nested.
    """
    silence_loggers()
    outer = getattr(_TRANSLATION, "action", None)
    _TRANSLATION.action = outer or action
    try:
        yield
    # The last three: a stream of rows that ended early, because the JVM is gone.
    except (PySparkException, Py4JError, pa.ArrowInvalid, EOFError, ConnectionError) as cause:
        raise _to_error(_TRANSLATION.action, cause) from cause
    finally:
        _TRANSLATION.action = outer


def _to_error(action: str, cause: _Failure) -> OmnigraphError:
    text = _text(cause)
    if (error := _parse_report(text)) is not None:
        return error
    if (unfit := _UNFIT_PYTHON.search(text)) is not None:
        return unfit_workers_error(f"Spark's workers run an unfit Python: {unfit[0][:_REASON_MAX]}")
    reason = useful_line(cause)
    if _sql_state(cause, text).startswith(_DATA_EXCEPTION):
        return out_of_range_error(f"a computed value does not fit its type: {reason}")
    if "spark.driver.maxResultSize" in text:
        message = f"{action} on Spark gave more rows than the driver may hold: {reason}"
        return LimitExceededError(message, hint="ask for fewer rows, or use the DataFrame")
    if isinstance(cause, AnalysisException):
        message = f"Spark refused {action}: {reason}"
        return InternalError(message, hint="this is a bug; please report it")
    if "Python worker exited unexpectedly" in text:
        message = f"{action} on Spark lost a worker process"
        return InternalError(message, hint="it may have run out of memory; use more partitions")
    is_stream_error = not isinstance(cause, PySparkException | Py4JError)
    if is_stream_error or isinstance(cause, Py4JNetworkError) or "OutOfMemoryError" in text:
        message = f"{action} lost Spark: {reason}"
        return InternalError(message, hint="it may have run out of memory; start again with more")
    if _STORAGE.search(text):
        message = f"{action} on Spark failed: {reason}"
        return StorageError(message, hint="try again; if it persists, check Spark's disks")
    message = f"{action} on Spark failed: {reason}"
    return InternalError(message, hint="this is a bug; please report it")


def unfit_workers_error(message: str) -> InvalidInputError:
    """The error of a Spark whose workers cannot run our tasks, with the settings to change."""
    python, release = "{}.{}".format(*sys.version_info), version("omnigraph")
    where = f"a Python {python} on the workers that has omnigraph {release}"
    if is_remote():
        hint = (
            f"on the server set PYSPARK_PYTHON to {where}; or bring one along: "
            f"omnigraph spark pack, spark.addArtifacts('environment.tar.gz#{FOLDER}', "
            f"archive=True), spark.conf.set('{PYTHON_OPTION}', '{PYTHON}')"
        )
    else:
        hint = (
            "before the session starts, set PYSPARK_PYTHON, or spark.pyspark.python with "
            f"spark-submit, to {where}; or bring one along: omnigraph spark pack, "
            f"spark.archives=environment.tar.gz#{FOLDER}, PYSPARK_PYTHON={PYTHON}"
        )
    return InvalidInputError(message, hint=hint, code=ErrorCode.WORKERS_MISMATCH)


def _text(cause: Exception) -> str:
    # Py4J calls the JVM for the stack, which may no longer run.
    try:
        return str(cause)
    except (Py4JError, OSError):
        return type(cause).__name__


def _parse_report(text: str) -> OmnigraphError | None:
    match = _TASK_REPORT.search(text)
    if match is None:
        return None
    report = json.loads(match[1])
    kind, code = _KINDS[report["kind"]], ErrorCode(report["code"])
    return kind(report["message"], hint=report["hint"], code=code, **report["details"])


def _sql_state(cause: _Failure, text: str) -> str:
    if isinstance(cause, PySparkException):
        return cause.getSqlState() or ""
    # An error that pyspark does not recognise is a Java stack, the innermost cause last.
    states = _SQL_STATE.findall(text)
    return states[-1] if states else ""


def useful_line(cause: Exception) -> str:
    """The one line of Spark's text that names the reason."""
    text = _text(cause)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if isinstance(cause, PythonException):
        # The line of a Python traceback that names the error.
        reason = next((line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)), "")
    elif isinstance(cause, Py4JJavaError):
        # The innermost cause is last.
        reasons = [match["reason"] for match in _JAVA_ERROR.finditer(text) if match["reason"]]
        reason = reasons[-1] if reasons else ""
    else:
        reason = ""
    reason = reason or (lines[0] if lines else type(cause).__name__)
    return _ADVICE.sub("", _LABEL.sub("", reason)).partition(" SQLSTATE:")[0][:_REASON_MAX]


class _TranslationFilter(logging.Filter):
    """Drops what pyspark logs about an error that `translate_errors` will re-raise."""

    def filter(self, record: logging.LogRecord) -> bool:  # noqa: ARG002
        return getattr(_TRANSLATION, "action", None) is None


class _Py4JFilter(logging.Filter):
    """Drops the errors that py4j logs, with their stacks: it also raises them, and interrupts."""

    def filter(self, record: logging.LogRecord) -> bool:
        is_error = record.levelno >= logging.ERROR
        return not (is_error and Path(record.pathname).parent == _PY4J)


_FILTER: Final = _TranslationFilter()
_PY4J_FILTER: Final = _Py4JFilter()
_PY4J: Final = Path(py4j.__file__).parent


_PANDAS_3: Final = "PySpark does not yet fully support pandas >= 3"


def silence_loggers() -> None:
    """Keep what pyspark and py4j both log and raise off standard error, and a warning of pandas 3.

    Spark warns of pandas 3 whenever rows cross by Arrow, though no pandas is used for that; what
    does cross is tried with both (`make compat`).
    """
    if not any(each[1] is not None and each[1].pattern == _PANDAS_3 for each in warnings.filters):
        warnings.filterwarnings("ignore", message=_PANDAS_3, category=FutureWarning)
    # py4j also logs to the root logger, which then prints all that it gets.
    for name in ("", "py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_PY4J_FILTER)
    # pyspark logs errors that it also raises, with their Java stack, on standard error. Its own
    # factory must make the loggers: they accept keyword arguments that others refuse.
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).addFilter(_FILTER)
