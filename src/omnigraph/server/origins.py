"""Origins: requests that a page of another site makes in somebody's browser are refused."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import Request

from omnigraph.errors import ErrorCode, NotAllowedError
from omnigraph.server.keys import is_loopback
from omnigraph.server.settings import ServerSettings


def require_own_site(request: Request, settings: ServerSettings) -> None:
    """Refuse what a browser sends for a page of another site.

    Tokens are no cookies, so such a page has none. A server that takes requests without a token
    would serve it: therefore its `Host` has to be this machine's, too, whatever name a page has
    given to this machine's address.
    """
    host = request.headers.get("host", "")
    fault = _origin_fault(request.headers.get("origin"), host, settings.origins)
    if fault is None and settings.allow_anonymous and not is_loopback(_hostname(host)):
        fault = f"the header Host has {host[:100]!r}, which is not this machine"
    if fault is None and request.method != "GET":
        site = request.headers.get("sec-fetch-site", "none")
        if site == "cross-site" and "origin" not in request.headers:
            fault = "the request is of a page of another site"
    if fault is not None:
        hint = "serve the page from here, or name its origin in the setting origins"
        raise NotAllowedError(fault, hint=hint, code=ErrorCode.FORBIDDEN)


def _origin_fault(origin: str | None, host: str, allowed: Collection[str]) -> str | None:
    """Why an origin is not one of ours; None if it is.

    >>> _origin_fault("http://localhost:8080", "localhost:8080", ())
    >>> _origin_fault("null", "localhost:8080", ())
    "the header Origin has 'null', which is another site"
    """
    if origin is None or origin in allowed:
        return None
    try:
        own = urlsplit(origin).netloc.lower()
    except ValueError:
        own = ""
    if own and own == host.lower():
        return None
    return f"the header Origin has {origin[:100]!r}, which is another site"


def _hostname(host: str) -> str:
    """The name in a header `Host`, without its port.

    >>> _hostname("[::1]:8080"), _hostname("localhost"), _hostname("[")
    ('::1', 'localhost', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
