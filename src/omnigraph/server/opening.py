"""Opening the web app in a browser, when the server answers."""

from __future__ import annotations

import os
import socket
import threading
import time
import webbrowser
from html import escape
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from omnigraph.server.service import GraphService

_ANSWER_SECONDS_MAX: Final = 60.0
_READ_SECONDS: Final = 120.0
"""How long a browser may take to read the page that logs it in."""


def open_app(service: GraphService, address: str, actor: str) -> None:
    """Show the app to who started the server, logged in; in a thread, which ends with the process.

    The browser is given a file that only its user can read, and no secret: arguments of processes
    are visible to everybody on a machine.
    """
    threading.Thread(target=_open, args=(service, address, actor), daemon=True).start()


def _open(service: GraphService, address: str, actor: str) -> None:
    if not _answers(address):
        return
    if service.settings.allow_anonymous:
        webbrowser.open(address)
        return
    page = service.settings.state.absolute() / "open.html"
    try:
        write_login_page(page, f"{address}/#/login?code={service.logins.offer(actor)}")
        webbrowser.open(page.as_uri())
        time.sleep(_READ_SECONDS)
    finally:
        page.unlink(missing_ok=True)


def write_login_page(path: Path, address: str) -> None:
    """A page for its owner alone, which leads to an address."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(
            '<!doctype html><meta charset="utf-8"><title>Omnigraph</title>\n'
            f'<meta http-equiv="refresh" content="0;url={escape(address)}">\n'
        )


def _answers(address: str) -> bool:
    """Whether the server takes connections, soon."""
    parts = urlsplit(address)
    give_up = time.monotonic() + _ANSWER_SECONDS_MAX
    while time.monotonic() < give_up:
        try:
            socket.create_connection((parts.hostname or "", parts.port or 80), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return True
    return False
