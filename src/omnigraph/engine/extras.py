"""The extras of the package: whether they are installed, and the errors without them."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from omnigraph.errors import ErrorCode, InvalidInputError

INSTALL_SPARK: Final = "pip install 'omnigraph[spark]'"
_SPARK_MODULES: Final = ("pyspark", "pandas")


def is_spark_installed() -> bool:
    """Whether the extra `spark` is installed."""
    return not _missing_for_spark()


def require_spark() -> None:
    """Require the packages of the extra `spark`."""
    if missing := _missing_for_spark():
        verb = "is" if len(missing) == 1 else "are"
        message = f"Spark needs {' and '.join(missing)}, which {verb} not installed"
        hint = f"{INSTALL_SPARK}, or use the local engine: --engine local, or engine='local'"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)


def require_pandas() -> None:
    """Require pandas."""
    if find_spec("pandas") is None:
        message = "a pandas DataFrame needs pandas, which is not installed"
        hint = f"{INSTALL_SPARK}, or pip install 'pandas<3'; arrow() and rows() need neither"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_INSTALLED)


def _missing_for_spark() -> list[str]:
    return [name for name in _SPARK_MODULES if find_spec(name) is None]
