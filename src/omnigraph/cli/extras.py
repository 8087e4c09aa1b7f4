"""Extras that commands need, and the errors without them."""

from __future__ import annotations

from importlib.util import find_spec

from omnigraph.errors import ErrorCode, InvalidInputError


def require_server() -> None:
    """Require the packages of the extra `server`."""
    names = ("fastapi", "uvicorn", "pydantic_settings", "jwt", "prometheus_client", "zstandard")
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        message = f"a server needs {', '.join(missing)}, which {verb} not installed"
        hint = "pip install 'omnigraph[server]'"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_INSTALLED)
