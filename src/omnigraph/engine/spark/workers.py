"""The Python that Spark's workers run: ours on this machine, and a compatible one on others.

Unless it is configured, Spark starts the first `python3` on the PATH, which is not ours where an
environment is used without being activated.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import Final, Self

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from omnigraph.engine.spark.failures import translate_errors, unfit_workers_error

_FIT_APPLICATIONS: Final[set[str]] = set()
_CHECK_LOCK: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, and the release of this package that it has.

    Attributes:
        release: None where it has none; `fault` is then the reason.
    """

    version: str
    executable: str
    release: str | None
    fault: str = ""

    @classmethod
    def ours(cls) -> Self:
        """The Python of this process."""
        return cls("{}.{}".format(*sys.version_info), sys.executable, version("omnigraph"))

    def serves(self, other: Interpreter) -> bool:
        """Whether tasks of the other can run on this one."""
        return (self.version, self.release) == (other.version, other.release)

    def __str__(self) -> str:
        package = "with" if self.release else "without"
        details = self.release or f"({self.fault})"
        return f"Python {self.version} ({self.executable}) {package} omnigraph {details}"


def use_our_python(context: SparkContext) -> None:
    """Make workers that are started from now on run the Python of this process."""
    # A context reads PYSPARK_PYTHON once, when it is made; every function that is sent to workers
    # later names the interpreter in this attribute (docs/substrate.md).
    context.pythonExec = sys.executable


def check_workers(session: SparkSession) -> None:
    """Check on one worker, once for an application, that it can run our tasks.

    Raises:
        InvalidInputError: it cannot. Nothing was read or written.
        InternalError: Spark could not run the task.
    """
    application = session.sparkContext.applicationId
    assert application is not None, "the context runs"
    with _CHECK_LOCK:
        if application in _FIT_APPLICATIONS:
            return
        ours = Interpreter.ours()
        theirs = _worker_interpreter(session)
        if not theirs.serves(ours):
            message = f"Spark's workers run {theirs}, and this process {ours}"
            raise unfit_workers_error(message)
        _FIT_APPLICATIONS.add(application)


def _worker_interpreter(session: SparkSession) -> Interpreter:
    # Without Arrow: a Python that lacks pyarrow must be able to answer, too.
    answer = sql.udf(_reporter(), "string", useArrow=False)
    with translate_errors("the check of Spark's workers"):
        [[text]] = session.range(0, 1, 1, 1).select(answer("id")).collect()
    return Interpreter(**json.loads(text))


def _reporter() -> Callable[[int], str]:
    """A function that returns the interpreter it runs on, as JSON."""

    # A nested function without outer variables is pickled by value. Others are pickled by name and
    # imported from this package, which the worker may not have.
    def report(number: int) -> str:  # noqa: ARG001
        import json
        import sys
        from importlib import import_module, metadata

        release, fault = None, ""
        try:
            import_module("omnigraph")
            release = metadata.version("omnigraph")
        except ImportError as error:
            fault = str(error)
        python = "{}.{}".format(*sys.version_info)
        interpreter = {"version": python, "executable": sys.executable}
        return json.dumps({**interpreter, "release": release, "fault": fault})

    return report
