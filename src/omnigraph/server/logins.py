"""Logins without a token at hand: a code that is good once, and for a short time."""

from __future__ import annotations

import secrets
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final

from omnigraph.clock import Clock
from omnigraph.errors import ErrorCode, NotAllowedError
from omnigraph.server.tokens import TokenFile

CODE_LIFETIME: Final = timedelta(minutes=2)
TOKEN_LIFETIME: Final = timedelta(hours=12)
_CODE_BYTES: Final = 32


@dataclass(slots=True)
class LoginCodes:
    """Codes that were offered to who started the server, and not used yet.

    A code is a secret that a browser is started with. It is worth nothing once it was used, so what
    is left of it in a history or in a list of processes gives nothing away.
    """

    tokens: TokenFile
    clock: Clock
    _offers: dict[str, tuple[str, datetime]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def offer(self, actor: str) -> str:
        """A code that logs an actor in, once."""
        code = secrets.token_urlsafe(_CODE_BYTES)
        with self._lock:
            self._offers[_digest(code)] = (actor, self.clock.now() + CODE_LIFETIME)
        return code

    def redeem(self, code: str) -> tuple[str, str]:
        """A token for a code, and whose it is; the code is used up."""
        with self._lock:
            actor, deadline = self._offers.pop(_digest(code), (None, self.clock.now()))
        if actor is None or self.clock.now() > deadline:
            message = "the code is unknown, expired or used"
            hint = "start 'omnigraph serve --open' again, or log in by a token"
            raise NotAllowedError(message, hint=hint, code=ErrorCode.UNAUTHENTICATED)
        token, _ = self.tokens.create(actor, lifetime=TOKEN_LIFETIME)
        return token, actor


def _digest(code: str) -> str:
    return sha256(code.encode(errors="surrogatepass")).hexdigest()
