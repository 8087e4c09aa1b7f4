"""Tokens: secrets that name an actor, stored as digests in one file, revocable at any time."""

from __future__ import annotations

import fcntl
import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Final

from omnigraph.clock import Clock
from omnigraph.errors import InvalidInputError, InvalidParameterError, NotFoundError
from omnigraph.model.commits import require_actor

PREFIX: Final = "og_"
"""Starts every token, so that a scanner for secrets finds one that was published."""

_SECRET_BYTES: Final = 32
_HINT: Final = "see 'omnigraph token list'"


@dataclass(frozen=True, slots=True)
class AccessToken:
    """What is stored of a token.

    Attributes:
        token_id: Names it in lists and logs; the first part of the token.
        digest: The SHA-256 of the token. Its secret has 256 random bits, so nothing slower is
            needed.
        expires_at: When it stops to be valid; None is never.
    """

    token_id: str
    actor: str
    digest: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def is_valid(self, now: datetime) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


class TokenFile:
    """The tokens of one server. Another process may change the file at any time."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[tuple[int, int, int], dict[str, AccessToken]] | None = None

    def list(self) -> tuple[AccessToken, ...]:
        """Every token, oldest first."""
        return tuple(self._read().values())

    def create(self, actor: str, *, lifetime: timedelta | None = None) -> tuple[str, AccessToken]:
        """Make a token: the secret, which is stored nowhere, and what is stored of it."""
        who = require_actor(actor)
        if who is None:
            message = "a token names an actor"
            raise InvalidParameterError(message, hint="give --actor NAME", name="actor")
        if lifetime is not None and lifetime <= timedelta(0):
            message = "a token that has expired is of no use"
            raise InvalidParameterError(message, hint="use a time such as 90d", name="expires")
        token_id = secrets.token_hex(6)
        text = f"{PREFIX}{token_id}_{secrets.token_urlsafe(_SECRET_BYTES)}"
        now = self._clock.now()
        expires = None if lifetime is None else now + lifetime
        token = AccessToken(token_id, who, _digest(text), now, expires)
        self._change(lambda tokens: (*tokens, token))
        return text, token

    def revoke(self, token_id: str) -> AccessToken:
        """Make a token invalid from now on; servers see it with their next request."""
        token = self._read().get(token_id)
        if token is None:
            message = f"token {token_id!r} does not exist"
            raise NotFoundError(message, hint=_HINT)
        revoked = replace(token, revoked_at=token.revoked_at or self._clock.now())
        self._change(lambda all_: [revoked if each.token_id == token_id else each for each in all_])
        return revoked

    def find(self, text: str) -> AccessToken | None:
        """The valid token of this text, or None.

        The digests are compared in constant time, and one is compared in any case.
        """
        parts = text.removeprefix(PREFIX).split("_", 1)
        token = self._read().get(parts[0]) if text.startswith(PREFIX) else None
        wanted = "0" * 64 if token is None else token.digest
        is_equal = hmac.compare_digest(_digest(text), wanted)
        if token is None or not is_equal or not token.is_valid(self._clock.now()):
            return None
        return token

    def _read(self) -> dict[str, AccessToken]:
        try:
            state = self._path.stat()
        except FileNotFoundError:
            return {}
        version = (state.st_mtime_ns, state.st_size, state.st_ino)
        with self._lock:
            if self._known is not None and self._known[0] == version:
                return self._known[1]
        tokens = {token.token_id: token for token in _decode(self._path)}
        with self._lock:
            self._known = (version, tokens)
        return tokens

    def _change(self, change: Callable[[tuple[AccessToken, ...]], Sequence[AccessToken]]) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with _exclusive(self._path):
            tokens = change(tuple(_decode(self._path)) if self._path.exists() else ())
            fresh = self._path.with_name(f"{self._path.name}.new")
            descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                rows = [asdict(token) for token in tokens]
                json.dump({"format": 1, "tokens": rows}, file, indent=1, default=str)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self._path)


@contextmanager
def _exclusive(path: Path) -> Iterator[None]:
    with path.with_name(f"{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _digest(text: str) -> str:
    return sha256(text.encode(errors="surrogatepass")).hexdigest()


def _decode(path: Path) -> list[AccessToken]:
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))["tokens"]
        return [
            AccessToken(
                row["token_id"],
                row["actor"],
                row["digest"],
                datetime.fromisoformat(row["created_at"]),
                *(row[name] and datetime.fromisoformat(row[name]) for name in _ENDS),
            )
            for row in rows
        ]
    except (OSError, ValueError, KeyError, TypeError) as cause:
        message = f"{path} is not a token file: {cause}"
        raise InvalidInputError(message, hint="restore it from a backup, or delete it") from cause


_ENDS: Final = ("expires_at", "revoked_at")
