"""Logins and profiles: `~/.config/omnigraph/config.toml`, which only its owner can read.

[profiles.work]
store = "https://host/graphs/world"

[tokens]
"https://host" = "og_…"
"""

from __future__ import annotations

import json
import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from omnigraph.errors import ErrorCode, InvalidInputError, NotFoundError, StorageError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.model.toml_lines import find_line
from omnigraph.remote.addresses import Address

CONFIG_VARIABLE: Final = "OMNIGRAPH_CONFIG"
_HINT: Final = "correct it, or log in again: omnigraph login"


@dataclass(frozen=True, slots=True)
class Profile:
    """Settings of the command line under a name: a graph, and a branch."""

    store: str
    branch: str | None = None


@dataclass(frozen=True, slots=True)
class Config:
    """What the file has. Tokens are in no representation of it."""

    profiles: Mapping[str, Profile] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)

    def profile(self, name: str) -> Profile:
        """A profile by its name."""
        found = self.profiles.get(name)
        if found is None:
            message = f"{config_path()} has no profile {name[:100]!r}"
            near = did_you_mean(name, self.profiles)
            raise NotFoundError(message, hint=near or "omnigraph login --profile NAME makes one")
        return found


def config_path() -> Path:
    """The file: `$OMNIGRAPH_CONFIG`, or below `$XDG_CONFIG_HOME`, or below `~/.config`."""
    if named := os.environ.get(CONFIG_VARIABLE):
        return Path(named)
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "omnigraph" / "config.toml"


def read_config() -> Config:
    """What the file has; nothing if it does not exist."""
    path = config_path()
    try:
        data = path.read_bytes()
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return Config()
    except OSError as cause:
        message = f"{path} cannot be read: {cause.strerror or cause}"
        raise StorageError(message, hint="check its permissions") from cause
    config = _parse(path, data)
    if config.tokens and os.name == "posix" and mode & 0o077:
        message = f"others may read {path}, which has tokens (mode {mode:o})"
        hint = f"chmod 600 {path}, and revoke tokens that others may have read"
        raise StorageError(message, hint=hint, code=ErrorCode.STORAGE_DENIED)
    return config


def _parse(path: Path, data: bytes) -> Config:
    try:
        fields = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as cause:
        message = f"{path} is not TOML: {cause}"
        raise InvalidInputError(message, hint=_HINT) from cause
    file = _ConfigText(path, data.decode())
    if strange := sorted(set(fields) - {"profiles", "tokens"}):
        raise file.error([strange[0]], "no such section")
    profiles = {
        name: _parse_profile(file, name, section)
        for name, section in _table(file, fields, "profiles").items()
    }
    tokens = _table(file, fields, "tokens")
    for server, token in tokens.items():
        if not isinstance(token, str):
            raise file.error(["tokens", server], "no text")
    return Config(profiles, tokens)


@dataclass(frozen=True, slots=True)
class _ConfigText:
    """The file while it is parsed."""

    path: Path
    text: str

    def error(self, keys: list[str], why: str) -> InvalidInputError:
        """What is wrong with a key, with its line."""
        line = find_line(self.text, keys)
        place = self.path if line is None else f"{self.path}:{line}"
        message = f"{place}: {'.'.join(keys)}: {why}"
        return InvalidInputError(message, hint=_HINT)


def _table(file: _ConfigText, fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = fields.get(name, {})
    if not isinstance(section, dict):
        raise file.error([name], "no section")
    return section


def _parse_profile(file: _ConfigText, name: str, section: object) -> Profile:
    if not isinstance(section, dict):
        raise file.error(["profiles", name], "no section")
    if strange := sorted(set(section) - {"store", "branch"}):
        raise file.error(["profiles", name, strange[0]], "no such setting")
    store, branch = section.get("store"), section.get("branch")
    if not isinstance(store, str):
        raise file.error(["profiles", name, "store"], "it has to name a graph")
    if not isinstance(branch, str | None):
        raise file.error(["profiles", name, "branch"], "it has to name a branch")
    return Profile(store, branch)


def find_token(address: Address) -> str | None:
    """The token that was stored for a server, or None."""
    return read_config().tokens.get(address.server)


def store_login(address: Address, token: str | None, profile: str | None) -> Path:
    """Store a token for a server, and a profile for a graph of it; the file that has them."""
    before = read_config()
    profiles, tokens = dict(before.profiles), dict(before.tokens)
    if token is not None:
        tokens[address.server] = token
    if profile is not None:
        profiles[profile] = Profile(str(address))
    return _write(Config(profiles, tokens))


def forget_login(address: Address) -> bool:
    """Delete the token of a server; whether there was one."""
    before = read_config()
    if address.server not in before.tokens:
        return False
    tokens = {server: each for server, each in before.tokens.items() if server != address.server}
    _write(Config(before.profiles, tokens))
    return True


def _write(config: Config) -> Path:
    path = config_path()
    fresh = path.with_suffix(f".{os.getpid()}.new")
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # Nobody else may read it, from its first byte on.
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(_format(config))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as cause:
        fresh.unlink(missing_ok=True)
        message = f"{path} cannot be written: {cause.strerror or cause}"
        raise StorageError(message, hint="check the permissions of its directory") from cause
    return path


def _format(config: Config) -> str:
    lines = []
    for name, profile in config.profiles.items():
        lines += [f"[profiles.{_text(name)}]", f"store = {_text(profile.store)}"]
        if profile.branch is not None:
            lines.append(f"branch = {_text(profile.branch)}")
        lines.append("")
    lines.append("[tokens]")
    lines += [f"{_text(server)} = {_text(token)}" for server, token in config.tokens.items()]
    return "\n".join(lines) + "\n"


def _text(value: str) -> str:
    # A text of JSON is one of TOML.
    return json.dumps(value)
