"""Addresses of served graphs: `https://host/graphs/world`, validated once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import quote, unquote, urlsplit

from omnigraph.errors import ErrorCode, InvalidInputError
from omnigraph.model.arguments import require_text

_SCHEMES: Final = ("https", "http")
_HINT: Final = "write https://host/graphs/NAME; see /graphs of the server for the names"


@dataclass(frozen=True, slots=True)
class Address:
    """Where a graph is served.

    Attributes:
        server: The scheme, the host and whatever a proxy puts before `/graphs`.
        graph: The name of the graph there.
    """

    server: str
    graph: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate an address.

        >>> Address.parse("https://host/graphs/world/")
        Address(server='https://host', graph='world')
        """
        parts = urlsplit(require_text(text, "the address of a graph"))
        if parts.scheme not in _SCHEMES or not parts.hostname:
            raise _address_error(text, "is not the address of a served graph")
        if parts.username is not None or parts.password is not None:
            # The address is shown in messages; a password must not be.
            message = "the address of a graph has a name or a password in it"
            hint = "give a token: token=, $OMNIGRAPH_TOKEN, or 'omnigraph login'"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)
        before, found, name = parts.path.rstrip("/").rpartition("/graphs/")
        if not found or not name or "/" in name or parts.query or parts.fragment:
            raise _address_error(text, "names no graph of a server")
        return cls(f"{parts.scheme}://{parts.netloc}{before}", unquote(name))

    @property
    def is_encrypted(self) -> bool:
        """Whether nobody on the way can read what is sent."""
        return self.server.startswith("https:")

    def __str__(self) -> str:
        return f"{self.server}/graphs/{quote(self.graph, safe='')}"

    def require_safe(self) -> None:
        """Refuse to send a token where others on the way can read it."""
        parts = urlsplit(self.server)
        if not self.is_encrypted and not _is_loopback(parts.hostname or ""):
            message = f"a token is not sent to {self.server}, which is not encrypted"
            hint = "use https://; http:// is for servers on this machine"
            raise InvalidInputError(message, hint=hint, code=ErrorCode.INVALID_URI)


def is_address(text: str) -> bool:
    """Whether a text names a served graph, and not a place of storage.

    >>> is_address("https://host/graphs/world"), is_address("s3://lake/world")
    (True, False)
    """
    return text.startswith(tuple(f"{scheme}://" for scheme in _SCHEMES))


def _is_loopback(host: str) -> bool:
    # Imported here: every command asks whether its graph has an address, and most have none.
    import ipaddress

    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _address_error(text: str, why: str) -> InvalidInputError:
    shown = text.partition("?")[0][:200]
    message = f"{shown!r} {why}"
    return InvalidInputError(message, hint=_HINT, code=ErrorCode.INVALID_URI)
