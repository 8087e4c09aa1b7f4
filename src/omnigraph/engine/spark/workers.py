"""The Python that Spark's workers run: ours on this machine, and a fit one on others.

Spark starts the first `python3` on the PATH unless it is told otherwise, which is another one than
ours where an environment is used without being activated.
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

from omnigraph.engine.spark.failures import translating, unfit_workers

_FOUND_FIT: Final[set[str]] = set()
_CHECKING: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, and the release of this package that it has.

    Attributes:
        release: None where it has none, and then `fault` says why.
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
        """Whether what the other sends can run on this one."""
        return (self.version, self.release) == (other.version, other.release)

    def __str__(self) -> str:
        package = "with" if self.release else "without"
        details = self.release or f"({self.fault})"
        return f"Python {self.version} ({self.executable}) {package} omnigraph {details}"


def use_our_python(context: SparkContext) -> None:
    """Have workers that are started from now on run the Python of this process."""
    # A context looks at PYSPARK_PYTHON once, when it is made; every function that is sent to
    # workers later names the interpreter that stands here (docs/substrate.md).
    context.pythonExec = sys.executable


def check_workers(session: SparkSession) -> None:
    """Ask one worker, once in a session's life, whether it can run what we send.

    Raises:
        InvalidInputError: it cannot. Nothing was read or written.
        InternalError: Spark could not run the task.
    """
    application = session.sparkContext.applicationId
    assert application is not None, "the context runs"
    with _CHECKING:
        if application in _FOUND_FIT:
            return
        ours = Interpreter.ours()
        theirs = _asked(session)
        if not theirs.serves(ours):
            message = f"Spark's workers run {theirs}, and this process {ours}"
            raise unfit_workers(message)
        _FOUND_FIT.add(application)


def _asked(session: SparkSession) -> Interpreter:
    # Without Arrow: a Python that lacks pyarrow must be able to answer, too.
    answer = sql.udf(_reporter(), "string", useArrow=False)
    with translating("the check of Spark's workers"):
        [[text]] = session.range(0, 1, 1, 1).select(answer("id")).collect()
    return Interpreter(**json.loads(text))


def _reporter() -> Callable[[int], str]:
    """A function that says which Python runs it."""

    # Inside another, and with nothing from around it: so it is sent whole. Others are sent by name,
    # to be imported from this package, which the worker may not have.
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
        found = {"version": python, "executable": sys.executable}
        return json.dumps({**found, "release": release, "fault": fault})

    return report
