"""What agents need to be installed."""

from __future__ import annotations

from importlib.util import find_spec

from omnigraph.errors import ErrorCode, InvalidInputError


def require_mcp() -> None:
    """Require the SDK of the Model Context Protocol."""
    if find_spec("mcp") is None:
        message = "serving agents needs mcp, which is not installed"
        hint = "pip install 'omnigraph[agents]'"
        raise InvalidInputError(message, hint=hint, code=ErrorCode.NOT_INSTALLED)
