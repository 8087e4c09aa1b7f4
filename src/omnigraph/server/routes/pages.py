"""The web app: its page and the files of its build, which need no token and have no content.

The page reads graphs by the other routes, with the token of who uses it. Names of files change with
what is in them, so browsers keep them; the page itself is asked for every time.
"""

from __future__ import annotations

import mimetypes
import re
from hashlib import sha256
from pathlib import Path
from typing import Final

from fastapi import APIRouter, Request
from starlette.responses import PlainTextResponse, Response

from omnigraph.errors import NotFoundError

router = APIRouter(include_in_schema=False)

FOLDER: Final = Path(__file__).parents[1] / "built_app"
"""The app as `web/build.py` builds it; a checkout may lack it."""

_POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No text becomes markup or a script, whatever the page does with it.
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
    )
)
_HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
_ALWAYS_ASKED: Final = "no-cache"
_KEPT: Final = "public, max-age=31536000, immutable"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)+")
_NOT_BUILT: Final = (
    "The web app was not built into this server. 'make web' builds it in a checkout.\n"
    "Graphs are served below /graphs, and /openapi.json describes how.\n"
)


def is_app_built() -> bool:
    """Whether there is an app to serve."""
    return (FOLDER / "index.html").is_file()


@router.get("/")
async def page(request: Request) -> Response:
    """The page of the app."""
    if not is_app_built():
        return PlainTextResponse(_NOT_BUILT, 404)
    return _answer(request, FOLDER / "index.html", _ALWAYS_ASKED)


@router.get("/icon.svg")
async def icon(request: Request) -> Response:
    """The icon of the app."""
    return _answer(request, FOLDER / "icon.svg", _ALWAYS_ASKED)


@router.get("/assets/{name}")
async def asset(request: Request, name: str) -> Response:
    """A script or a style of the app."""
    if _NAME.fullmatch(name) is None:
        raise _missing_error()
    return _answer(request, FOLDER / "assets" / name, _KEPT)


def _answer(request: Request, path: Path, caching: str) -> Response:
    if not path.is_file():
        raise _missing_error()
    data = path.read_bytes()
    tag = f'"{sha256(data).hexdigest()[:32]}"'
    headers = {**_HEADERS, "Cache-Control": caching, "ETag": tag}
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    kind, _ = mimetypes.guess_type(path.name)
    return Response(data, media_type=kind or "application/octet-stream", headers=headers)


def _missing_error() -> NotFoundError:
    message = "the web app has no such file"
    return NotFoundError(message, hint="load the page again: the server may be another release")
