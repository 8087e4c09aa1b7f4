"""Settings of a graph: the keys, the accepted values, the defaults, and how stored values read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, Self, TypeAlias

from omnigraph.errors import FormatError, InvalidParameterError
from omnigraph.limits import KEEP_COMMITS_MAX, KEEP_DAYS_MAX
from omnigraph.model.arguments import require_text
from omnigraph.model.query_limits import (
    NO_LIMIT,
    QueryLimits,
    require_max_rows,
    require_memory,
    require_timeout,
)

SettingValue: TypeAlias = "str | int"


class SettingKey(StrEnum):
    """Every setting of this release."""

    OPTIMIZE = "maintenance.optimize"
    KEEP_COMMITS = "maintenance.keep_commits"
    KEEP_DAYS = "maintenance.keep_days"
    QUERY_TIMEOUT = "query.timeout"
    QUERY_MEMORY = "query.memory"
    QUERY_MAX_ROWS = "query.max_rows"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Validate a key from outside.

        Raises:
            InvalidParameterError: there is no such setting; the hint names the nearest.
        """
        name = require_text(text, "a setting's key")
        if name in set(cls):
            return cls(name)
        # People leave out the first part, or misspell either.
        short = {key.rpartition(".")[2]: key for key in cls}
        near = get_close_matches(name, [*cls, *short], n=1)
        keys = f"the settings are {', '.join(cls)}"
        hint = f"did you mean {short.get(near[0], near[0])}? {keys}" if near else keys
        message = f"there is no setting {name[:200]!r}"
        raise InvalidParameterError(message, hint=hint, name=name[:200], known=list(map(str, cls)))


class OptimizeMode(StrEnum):
    """Whether a writer optimizes the tables that it has fragmented."""

    AUTO = "auto"
    OFF = "off"


class SettingSource(StrEnum):
    """Where the value of a setting comes from."""

    DEFAULT = "default"
    GRAPH = "graph"


@dataclass(frozen=True, slots=True)
class _Word:
    """A setting that is one of several words."""

    default: str
    words: tuple[str, ...]

    @property
    def accepted(self) -> str:
        return f"{', '.join(self.words[:-1])} or {self.words[-1]}"

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and value in self.words


@dataclass(frozen=True, slots=True)
class _Number:
    """A setting that is a whole number from 0 to a maximum."""

    default: int
    most: int

    @property
    def accepted(self) -> str:
        return f"a whole number from 0 to {self.most}"

    def accepts(self, value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= self.most


@dataclass(frozen=True, slots=True)
class _Limit:
    """A setting that limits queries, or does not: the word `none`, which is its default."""

    parse: Callable[[object, str], object]
    accepted: str
    default: str = NO_LIMIT

    def accepts(self, value: object) -> bool:
        # Numbers would not say of what: stored values are for people to read, too.
        if not isinstance(value, str) and self.parse is not require_max_rows:
            return False
        try:
            self.parse(value, "value")
        except InvalidParameterError:
            return False
        return True


_KINDS: Final[Mapping[SettingKey, _Word | _Number | _Limit]] = {
    SettingKey.OPTIMIZE: _Word(OptimizeMode.AUTO.value, tuple(mode.value for mode in OptimizeMode)),
    SettingKey.KEEP_COMMITS: _Number(1000, KEEP_COMMITS_MAX),
    SettingKey.KEEP_DAYS: _Number(30, KEEP_DAYS_MAX),
    SettingKey.QUERY_TIMEOUT: _Limit(require_timeout, "none, or a duration such as 30s"),
    SettingKey.QUERY_MEMORY: _Limit(require_memory, "none, or a size such as 512MB"),
    SettingKey.QUERY_MAX_ROWS: _Limit(require_max_rows, "none, or a whole number from 1"),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a graph.

    Attributes:
        key: Its name; for one of a newer release, a name that this release does not know.
        default: The value if nobody sets it; None if this release does not know it.
        source: `graph` if it was set, else `default`.
        accepted: The accepted values in words; None if this release does not know it.
        warning: Why this release does not use the stored value; None if it does.
    """

    key: str
    value: object
    default: SettingValue | None
    source: SettingSource
    accepted: str | None
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class MaintenanceSettings:
    """How a graph is kept small and fast without being told each time.

    Attributes:
        keep_commits: How many of the newest commits of each branch are kept in any case.
        keep_days: How old a commit has to be before it can be let go.
    """

    optimize: OptimizeMode
    keep_commits: int
    keep_days: int


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a graph, typed."""

    maintenance: MaintenanceSettings
    query: QueryLimits

    @classmethod
    def of(cls, stored: Mapping[str, object]) -> Self:
        """The settings with these stored values; what is not stored has its default.

        >>> Settings.of({"maintenance.keep_days": 7}).maintenance.keep_days
        7
        >>> str(Settings.of({}).maintenance.optimize)
        'auto'

        Raises:
            FormatError: a stored value is not one that this release accepts.
        """
        return cls(
            MaintenanceSettings(
                OptimizeMode(str(value_of(stored, SettingKey.OPTIMIZE))),
                int(value_of(stored, SettingKey.KEEP_COMMITS)),
                int(value_of(stored, SettingKey.KEEP_DAYS)),
            ),
            QueryLimits(
                require_timeout(value_of(stored, SettingKey.QUERY_TIMEOUT), "query.timeout"),
                require_memory(value_of(stored, SettingKey.QUERY_MEMORY), "query.memory"),
                require_max_rows(value_of(stored, SettingKey.QUERY_MAX_ROWS), "query.max_rows"),
            ),
        )


def require_setting(key: SettingKey, value: object) -> SettingValue:
    """A value that a setting accepts.

    >>> require_setting(SettingKey.OPTIMIZE, "off")
    'off'

    Raises:
        InvalidParameterError: it has the wrong type, or is out of range.
    """
    kind = _KINDS[key]
    if not kind.accepts(value):
        message = f"the setting {key} has to be {kind.accepted}, and {value!r:.100} is not"
        hint = f"its default is {kind.default}; 'omnigraph settings list' shows every setting"
        raise InvalidParameterError(message, hint=hint, name=str(key), accepted=kind.accepted)
    assert isinstance(value, str | int), "no kind accepts anything else"
    return value


def value_of(stored: Mapping[str, object], key: SettingKey) -> SettingValue:
    """The value of one setting, stored or by default.

    Raises:
        FormatError: the stored value is not one that this release accepts. It is not replaced by
            the default: a default could let commits go that the stored value keeps.
    """
    kind = _KINDS[key]
    value = stored.get(key, kind.default)
    if not kind.accepts(value):
        message = _misfit(key, value)
        hint = f"upgrade omnigraph, or run 'omnigraph settings set {key} {kind.default}'"
        raise FormatError(message, hint=hint, name=str(key))
    assert isinstance(value, str | int), "no kind accepts anything else"
    return value


def describe_settings(stored: Mapping[str, object]) -> tuple[Setting, ...]:
    """Every setting of this release, then what a newer one stored."""
    known = [describe_setting(key, stored) for key in SettingKey]
    strange = sorted(stored.keys() - set(SettingKey))
    return (*known, *(_describe_unknown(key, stored[key]) for key in strange))


def describe_setting(key: SettingKey, stored: Mapping[str, object]) -> Setting:
    """One setting of this release, given the stored values."""
    kind = _KINDS[key]
    value = stored.get(key, kind.default)
    source = SettingSource.GRAPH if key in stored else SettingSource.DEFAULT
    warning = None if kind.accepts(value) else _misfit(key, value)
    return Setting(str(key), value, kind.default, source, kind.accepted, warning)


def _describe_unknown(key: str, value: object) -> Setting:
    warning = f"this release does not know the setting {key}, and ignores it"
    return Setting(key, value, None, SettingSource.GRAPH, None, warning)


def _misfit(key: SettingKey, value: object) -> str:
    accepted = _KINDS[key].accepted
    return f"the setting {key} is {value!r:.100}, and this release accepts {accepted}"
