"""Signing keys of an identity provider: from a file or an address, read again when they change."""

from __future__ import annotations

import ipaddress
import json
import logging
import math
import threading
import time
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import jwt

from omnigraph.errors import InvalidInputError

_log: Final = logging.getLogger(__name__)
_AGE_SECONDS_MAX: Final = 300.0
_PAUSE_SECONDS: Final = 10.0
"""Between two readings for the sake of unknown keys: whoever makes keys up must not cause many."""


class SigningKeys:
    """The keys of a provider, which may change at any time."""

    def __init__(self, place: str) -> None:
        """Name the keys; those of a file are read now, those of an address when one is needed."""
        self._place = place
        self._lock = threading.Lock()
        self._keys: tuple[jwt.PyJWK, ...] = ()
        self._read_at = -math.inf
        self._is_remote = place.startswith(("https://", "http://"))
        if not self._is_remote:
            self._keys = _read_file(Path(place))
            self._read_at = time.monotonic()
        elif place.startswith("http://") and not is_loopback(urlsplit(place).hostname or ""):
            message = f"jwt.jwks is {place}: without TLS, others could replace the keys"
            raise InvalidInputError(message, hint="use https")

    def find(self, key_id: str | None) -> Any:
        """The key of an id; the only one when a token names none."""
        with self._lock:
            if self._age() > _AGE_SECONDS_MAX:
                self._read()
            found = self._match(key_id)
            if found is None and self._age() > _PAUSE_SECONDS:
                self._read()
                found = self._match(key_id)
        if found is None:
            message = "no key has this id"
            raise jwt.InvalidKeyError(message)
        return found.key

    def _age(self) -> float:
        return time.monotonic() - self._read_at

    def _match(self, key_id: str | None) -> jwt.PyJWK | None:
        found = [key for key in self._keys if key_id is None or key.key_id == key_id]
        return found[0] if len(found) == 1 or (found and key_id is not None) else None

    def _read(self) -> None:
        """Read the keys; those that are known hold on while they cannot be read."""
        self._read_at = time.monotonic()
        try:
            self._keys = self._read_now()
        except (jwt.PyJWTError, InvalidInputError) as fault:
            _log.warning("the keys of %s cannot be read: %s", self._place, fault)

    def _read_now(self) -> tuple[jwt.PyJWK, ...]:
        if not self._is_remote:
            return _read_file(Path(self._place))
        client = jwt.PyJWKClient(self._place, cache_jwk_set=False, timeout=5)
        return tuple(client.get_jwk_set(refresh=True).keys)


def _read_file(path: Path) -> tuple[jwt.PyJWK, ...]:
    try:
        found = jwt.PyJWKSet.from_dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, AttributeError, jwt.PyJWTError) as cause:
        message = f"jwt.jwks names {path}, which is not a key set: {cause}"
        raise InvalidInputError(message, hint="save the JWKS of the provider there") from cause
    return tuple(found.keys)


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
