"""The process of one command: what it need not import, and how it ends."""

from __future__ import annotations

import atexit
import os
import sys
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


_code: int = Exit.FAILED
"""The exit code that `end` was called with."""


def leave_memory() -> None:
    """Have this process leave its memory to the operating system when it ends.

    Releasing what the libraries hold, object by object, takes a sixth of a short command. Python
    runs the callback that was registered first last, so this comes before their imports.
    """
    atexit.register(_leave)


def end(code: int) -> NoReturn:
    """End this process as Python does: threads, callbacks, streams."""
    global _code
    _code = code
    # Python reports the interrupt of what waits for threads, and does not raise it.
    report = sys.unraisablehook

    def interrupt_or_report(unraisable: sys.UnraisableHookArgs) -> None:
        global _code
        if issubclass(unraisable.exc_type, KeyboardInterrupt):
            _code = Exit.INTERRUPTED
        else:
            report(unraisable)

    sys.unraisablehook = interrupt_or_report
    sys.exit(code)


def _leave() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            with suppress(OSError, ValueError):
                stream.flush()
    os._exit(_code)
