"""The extra of the package that a client needs."""

from __future__ import annotations

from importlib.util import find_spec

from omnigraph.errors import ErrorCode, InvalidInputError


def require_client() -> None:
    """Require the packages of the extra `client`."""
    if find_spec("httpx") is None:
        message = "a remote graph needs httpx, which is not installed"
        raise InvalidInputError(
            message, hint="pip install 'omnigraph[client]'", code=ErrorCode.NOT_INSTALLED
        )
