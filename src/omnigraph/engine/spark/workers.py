"""The Python that Spark's workers run: ours on this machine, and a compatible one on others.

Unless it is configured, Spark starts the first `python3` on the PATH, which is not ours where an
environment is used without being activated.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final, Self

from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql

from omnigraph.engine.spark.connect import is_connect
from omnigraph.engine.spark.failures import translate_errors, unfit_workers_error

_FIT: Final[set[str]] = set()
"""Applications, and sessions of Spark Connect, whose workers were checked."""

_CHECK_LOCK: Final = threading.Lock()


_SHARED: Final = {"pylance": 2, "pyarrow": 1, "duckdb": 1}
"""Packages of which tasks and the driver need the same release, by how many of its numbers."""


@dataclass(frozen=True, slots=True)
class Interpreter:
    """A Python, and the release of this package that it has.

    Attributes:
        release: None where it cannot be used; `fault` is then the reason.
        packages: The releases of `_SHARED`.
    """

    version: str
    executable: str
    release: str | None
    fault: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def ours(cls) -> Self:
        """The Python of this process."""
        packages = {name: version(name) for name in _SHARED}
        python = "{}.{}".format(*sys.version_info)
        return cls(python, sys.executable, version("omnigraph"), packages=packages)

    def serves(self, other: Interpreter) -> bool:
        """Whether tasks of the other can run on this one."""
        is_same = (self.version, self.release) == (other.version, other.release)
        return is_same and not self.different_packages(other)

    def different_packages(self, other: Interpreter) -> list[str]:
        """The packages whose releases do not work together."""
        return [
            name
            for name, numbers in _SHARED.items()
            if _series(self.packages.get(name, ""), numbers)
            != _series(other.packages.get(name, ""), numbers)
        ]

    def describe(self, packages: Sequence[str]) -> str:
        """The interpreter, this package and these others."""
        others = (f"{name} {self.packages.get(name, 'missing')}" for name in packages)
        return ", ".join([str(self), *others])

    def __str__(self) -> str:
        package = "with" if self.release else "without"
        details = self.release or f"({self.fault})"
        return f"Python {self.version} ({self.executable}) {package} omnigraph {details}"


def _series(release: str, numbers: int) -> list[str]:
    return release.split(".")[:numbers]


def use_our_python(context: SparkContext) -> None:
    """Make workers that are started from now on run the Python of this process."""
    # A context reads PYSPARK_PYTHON once, when it is made; every function that is sent to workers
    # later names the interpreter in this attribute (docs/substrate.md).
    context.pythonExec = sys.executable


def check_workers(session: SparkSession) -> None:
    """Check on one worker, once for a session, that it can run our tasks."""
    checked = _identity(session)
    with _CHECK_LOCK:
        if checked in _FIT:
            return
        ours = Interpreter.ours()
        theirs = _worker_interpreter(session)
        if not theirs.serves(ours):
            others = theirs.different_packages(ours) if theirs.release else []
            both = theirs.describe(others), ours.describe(others)
            message = "Spark's workers run {}, and this process {}".format(*both)
            raise unfit_workers_error(message)
        _FIT.add(checked)


def _identity(session: SparkSession) -> str:
    """What workers belong to: an application, or a session that may bring a Python of its own."""
    if is_connect(session):
        return str(session.session_id)  # type: ignore[attr-defined]
    application = session.sparkContext.applicationId
    assert application is not None, "the context runs"
    return application


def _worker_interpreter(session: SparkSession) -> Interpreter:
    # Without Arrow: a Python that lacks pyarrow must be able to answer, too.
    answer = sql.udf(_reporter(tuple(_SHARED)), "string", useArrow=False)
    with translate_errors("the check of Spark's workers"):
        [[text]] = session.range(0, 1, 1, 1).select(answer("id")).collect()
    return Interpreter(**json.loads(text))


def _reporter(packages: tuple[str, ...]) -> Callable[[int], str]:
    """A function that returns the interpreter it runs on, as JSON."""

    # A nested function is pickled by value, if it uses nothing of this module. Others are pickled
    # by name and imported from this package, which the worker may not have.
    def report(number: int) -> str:  # noqa: ARG001
        import json
        import sys
        from importlib import import_module, metadata

        release, fault, releases = None, "", {}
        try:
            # The package itself imports little; tasks use these.
            for module in ("omnigraph", "lance", "pyarrow", "duckdb"):
                import_module(module)
            releases = {name: metadata.version(name) for name in packages}
            release = metadata.version("omnigraph")
        except ImportError as error:
            fault = str(error)
        python = "{}.{}".format(*sys.version_info)
        interpreter = {"version": python, "executable": sys.executable, "packages": releases}
        return json.dumps({**interpreter, "release": release, "fault": fault})

    return report
