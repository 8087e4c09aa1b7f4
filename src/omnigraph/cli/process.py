"""The process of one command: what it need not import, and how it ends."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, NoReturn

from omnigraph.cli.exits import Exit


class _PandasHider:
    """Hides pandas from imports until Spark is looked for, which needs it."""

    def find_spec(
        self,
        name: str,
        path: Sequence[str] | None = None,  # noqa: ARG002  # as importlib calls it
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        if name == "pandas":
            message = "No module named 'pandas'"
            raise ModuleNotFoundError(message, name=name)
        if name == "pyspark":
            sys.meta_path.remove(self)
            _show_pandas_to_arrow()
        return None


def defer_pandas() -> None:
    """Keep Arrow from importing pandas, if it is installed, unless this process uses Spark.

    Arrow imports pandas with the first Python value that it converts, to recognise values of
    pandas. That takes a third of the time of a short command, and no command has such values.
    """
    is_hidden = any(isinstance(finder, _PandasHider) for finder in sys.meta_path)
    if "pandas" not in sys.modules and not is_hidden:
        sys.meta_path.insert(0, _PandasHider())


def _show_pandas_to_arrow() -> None:
    """Have Arrow look for pandas again: where it converts from pandas, it remembers its absence."""
    arrow: Any = sys.modules.get("pyarrow")
    if arrow is not None:
        with suppress(ImportError):
            arrow.table({}).to_pandas()


def end(code: int) -> NoReturn:
    """End this process as Python does, but leave its memory to the operating system.

    Releasing what the libraries hold, object by object, takes a sixth of a short command.
    """
    # From Python 3.13 on, the interrupt of what waits for threads is reported and not raised.
    report = sys.unraisablehook

    def interrupt_or_report(unraisable: sys.UnraisableHookArgs) -> None:
        nonlocal code
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            code = Exit.INTERRUPTED
        else:
            report(unraisable)

    sys.unraisablehook = interrupt_or_report
    # In the order of Python's own end: threads, callbacks, streams.
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # noqa: SLF001  # no public name
        atexit._run_exitfuncs()  # noqa: SLF001
    except KeyboardInterrupt:
        code = Exit.INTERRUPTED
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(code)
