"""Identity: from the header of a request to its actor; no other header names one."""

from __future__ import annotations

import asyncio
from typing import Final

import jwt

from omnigraph.clock import Clock
from omnigraph.errors import ErrorCode, InvalidInputError, NotAllowedError, OmnigraphError
from omnigraph.model.commits import require_actor
from omnigraph.server.keys import SigningKeys, is_loopback
from omnigraph.server.settings import JwtSection, ServerSettings
from omnigraph.server.tokens import PREFIX, TokenFile

_TOKEN_LENGTH_MAX: Final = 8_192
_ASYMMETRIC: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
)


class Identities:
    """Finds the actor of a request, or refuses it."""

    def __init__(self, settings: ServerSettings, clock: Clock) -> None:
        self._tokens = TokenFile(settings.token_file, clock)
        self._provider = None if settings.jwt is None else _Provider(settings.jwt)
        self._allows_anonymous = settings.allow_anonymous

    async def actor_of(self, authorization: str | None) -> str | None:
        """The actor that an `Authorization` header proves; None is anonymous."""
        if authorization is None:
            if self._allows_anonymous:
                return None
            message = "this server takes no request without a token"
            raise _refusal(message)
        scheme, _, text = authorization.partition(" ")
        if scheme.lower() != "bearer" or not text or len(text) > _TOKEN_LENGTH_MAX:
            message = "the header Authorization is not 'Bearer TOKEN'"
            raise _refusal(message)
        if not text.startswith(PREFIX) and self._provider is not None:
            # The keys may have to be fetched.
            return await asyncio.to_thread(self._provider.actor_of, text)
        token = self._tokens.find(text)
        if token is None:
            message = "the token is unknown, expired or revoked"
            raise _refusal(message)
        return token.actor


class _Provider:
    """Verifies tokens that an identity provider signed."""

    def __init__(self, section: JwtSection) -> None:
        if strange := set(section.algorithms) - _ASYMMETRIC:
            message = f"jwt.algorithms has {sorted(strange)[0]!r}, which needs no private key"
            raise InvalidInputError(message, hint=f"use some of {', '.join(sorted(_ASYMMETRIC))}")
        self._section = section
        self._keys = SigningKeys(section.jwks)

    def actor_of(self, text: str) -> str:
        """The actor that a signed token names."""
        section = self._section
        try:
            claims = jwt.decode(
                text,
                self._keys.find(_key_id(text)),
                algorithms=list(section.algorithms),
                issuer=section.issuer,
                audience=section.audience,
                options={"require": ["exp", "iss", "aud", section.actor_claim]},
            )
            actor = require_actor(claims[section.actor_claim])
        except (jwt.PyJWTError, OmnigraphError, TypeError, ValueError, RecursionError) as cause:
            message = "the token is unknown, expired or revoked"
            raise _refusal(message) from cause
        assert actor is not None, "the claim is required"
        return actor


def _key_id(text: str) -> str | None:
    key_id = jwt.get_unverified_header(text).get("kid")
    return None if key_id is None else str(key_id)


def _refusal(message: str) -> NotAllowedError:
    hint = "send 'Authorization: Bearer TOKEN'; 'omnigraph token create' makes one"
    return NotAllowedError(message, hint=hint, code=ErrorCode.UNAUTHENTICATED)


def require_safe_address(settings: ServerSettings) -> None:
    """Refuse to serve everybody on a network."""
    if settings.allow_anonymous and not is_loopback(settings.host):
        message = f"--allow-anonymous serves this machine only, and the host is {settings.host}"
        hint = "leave the host at 127.0.0.1, or make tokens by 'omnigraph token create'"
        raise InvalidInputError(message, hint=hint)
