"""Where the starter listens: a socket in a directory that only its user can enter.

The client imports this before anything else, so it needs only what Python starts with.
"""

from __future__ import annotations

import os
import stat
import sys
import zlib

PROTOCOL = 1
"""The messages that client and starter exchange; a change of them changes this number."""

# Not `safe_path`, which the starter is started with: it leaves out a directory of imports that the
# entry of the command does not have.
_OPTIONS = (
    "bytes_warning",
    "dev_mode",
    "dont_write_bytecode",
    "ignore_environment",
    "inspect",
    "isolated",
    "no_site",
    "no_user_site",
    "optimize",
    "utf8_mode",
    "verbose",
    "warn_default_encoding",
)


def directory() -> str:
    """The path of the directory, which need not exist.

    Raises:
        FileNotFoundError: the user has no home.
    """
    home = os.environ.get("XDG_CACHE_HOME") or f"{os.environ.get('HOME', '')}/.cache"
    if not home.startswith("/") or home == "/.cache":
        message = "neither HOME nor XDG_CACHE_HOME names a directory"
        raise FileNotFoundError(message)
    return f"{home}/omnigraph/warm"


def open_directory(path: str) -> int:
    """A descriptor of the directory, if only this user can enter it or replace its contents.

    Raises:
        PermissionError: it belongs to another user, or others may enter it.
        OSError: it does not exist, or is a link.
    """
    descriptor = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    facts = os.fstat(descriptor)
    if is_private(owner=facts.st_uid, mode=facts.st_mode, user=os.geteuid()):
        return descriptor
    os.close(descriptor)
    raise PermissionError(path)


def is_private(*, owner: int, mode: int, user: int) -> bool:
    """Whether a directory is of this user alone.

    >>> is_private(owner=1000, mode=0o40700, user=1000)
    True
    >>> is_private(owner=1000, mode=0o40750, user=1000), is_private(owner=0, mode=0o40700, user=1)
    (False, False)
    """
    return owner == user and not mode & (stat.S_IRWXG | stat.S_IRWXO)


def address(folder: int, name: str) -> str:
    """The address of a socket in an open directory: short, and safe from a replaced directory."""
    return f"/proc/self/fd/{folder}/{name}"


def socket_name() -> str:
    """The name of the socket: each installation has a starter of its own."""
    return f"{zlib.crc32(repr(_installation()).encode()):08x}"


def identity() -> bytes:
    """The installation and the options of this Python: a command has those of its starter."""
    options = [getattr(sys.flags, name) for name in _OPTIONS]
    others = [sys.warnoptions, sys._xoptions]  # noqa: SLF001  # it has no public name
    facts = (PROTOCOL, sys.version, *_installation(), options, *others)
    return repr(facts).encode("utf-8", "surrogateescape")


def _installation() -> tuple[str, str]:
    return sys.prefix, __file__.rpartition("/")[0]
