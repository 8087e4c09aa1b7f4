"""Settings of a graph: the keys, the accepted values, the defaults, and how stored values read."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Final, Self, TypeAlias

from omnigraph.errors import FormatError, InvalidParameterError
from omnigraph.limits import (
    KEEP_COMMITS_MAX,
    KEEP_DAYS_MAX,
    VECTOR_PROBES_MAX,
    VECTOR_REFINE_FACTOR,
    VECTOR_REFINE_MAX,
)
from omnigraph.model.arguments import require_text
from omnigraph.model.brief import brief
from omnigraph.model.durations import require_duration
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
    SEARCH_EXACT = "search.exact"
    SEARCH_PROBES = "search.probes"
    SEARCH_REFINE = "search.refine"
    EMBEDDING_NOW_ROWS = "embedding.now_rows"
    EMBEDDING_BATCH_SIZE = "embedding.batch_size"
    EMBEDDING_RATE = "embedding.requests_per_minute"
    EMBEDDING_TIMEOUT = "embedding.timeout"
    EMBEDDING_DEADLINE = "embedding.deadline"
    EMBEDDING_OPENAI_URL = "embedding.openai_url"
    EMBEDDING_OPENAI_KEY = "embedding.openai_key"
    EMBEDDING_GEMINI_URL = "embedding.gemini_url"
    EMBEDDING_GEMINI_KEY = "embedding.gemini_key"

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
        message = f"{name[:200]!r} is not a valid setting"
        raise InvalidParameterError(message, hint=hint, name=name[:200], known=list(map(str, cls)))


class OptimizeMode(StrEnum):
    """Whether a writer optimizes the tables that it has fragmented."""

    AUTO = "auto"
    OFF = "off"


class Switch(StrEnum):
    """Whether something is so."""

    ON = "on"
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
    """A setting that is a whole number from a minimum to a maximum."""

    default: int
    most: int
    least: int = 0

    @property
    def accepted(self) -> str:
        return f"a whole number from {self.least} to {self.most}"

    def accepts(self, value: object) -> bool:
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        return self.least <= value <= self.most


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


NO_KEY: Final = "none"

KEY_FORM: Final = re.compile(r"\$\{([A-Z][A-Z0-9_]*_API_KEY)\}")
"""How a setting names the key of a provider. A graph says which variable is sent to its provider,
so it may name none that is not for that."""

# Without a user, a password or a query, which may be secrets.
_ADDRESS: Final = re.compile(r"https?://[A-Za-z0-9.\-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~\-/]*)?")


@dataclass(frozen=True, slots=True)
class _Duration:
    """A setting that is a duration longer than none."""

    default: str
    accepted: str = "a duration such as 30s"

    def accepts(self, value: object) -> bool:
        if not isinstance(value, str):
            return False
        try:
            return require_duration(value, "value") > timedelta(0)
        except InvalidParameterError:
            return False


@dataclass(frozen=True, slots=True)
class _Address:
    """A setting that is the address of a server."""

    default: str
    accepted: str = "an address such as https://example.com/v1"

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class _Key:
    """A setting that names the environment variable of a key, and never is the key."""

    default: str
    accepted: str = f"{NO_KEY}, or the name of an environment variable such as ${{MY_API_KEY}}"

    def accepts(self, value: object) -> bool:
        return isinstance(value, str) and (value == NO_KEY or KEY_FORM.fullmatch(value) is not None)


_KINDS: Final[Mapping[SettingKey, _Word | _Number | _Limit | _Duration | _Address | _Key]] = {
    SettingKey.OPTIMIZE: _Word(OptimizeMode.AUTO.value, tuple(mode.value for mode in OptimizeMode)),
    SettingKey.KEEP_COMMITS: _Number(1000, KEEP_COMMITS_MAX),
    SettingKey.KEEP_DAYS: _Number(30, KEEP_DAYS_MAX),
    SettingKey.QUERY_TIMEOUT: _Limit(require_timeout, "none, or a duration such as 30s"),
    SettingKey.QUERY_MEMORY: _Limit(require_memory, "none, or a size such as 512MB"),
    SettingKey.QUERY_MAX_ROWS: _Limit(require_max_rows, "none, or a whole number from 1"),
    SettingKey.SEARCH_EXACT: _Word(Switch.OFF.value, tuple(switch.value for switch in Switch)),
    SettingKey.SEARCH_PROBES: _Number(0, VECTOR_PROBES_MAX),
    SettingKey.SEARCH_REFINE: _Number(VECTOR_REFINE_FACTOR, VECTOR_REFINE_MAX, least=1),
    SettingKey.EMBEDDING_NOW_ROWS: _Number(10_000, 1_000_000),
    SettingKey.EMBEDDING_BATCH_SIZE: _Number(128, 2048, least=1),
    SettingKey.EMBEDDING_RATE: _Number(0, 1_000_000),
    SettingKey.EMBEDDING_TIMEOUT: _Duration("60s"),
    SettingKey.EMBEDDING_DEADLINE: _Duration("1h"),
    SettingKey.EMBEDDING_OPENAI_URL: _Address("https://api.openai.com/v1"),
    SettingKey.EMBEDDING_OPENAI_KEY: _Key("${OPENAI_API_KEY}"),
    SettingKey.EMBEDDING_GEMINI_URL: _Address("https://generativelanguage.googleapis.com/v1beta"),
    SettingKey.EMBEDDING_GEMINI_KEY: _Key("${GEMINI_API_KEY}"),
}


@brief
@dataclass(frozen=True, slots=True)
class Setting:
    """One setting of a graph.

    Attributes:
        key: Its name; for one of a newer release, a name that this release does not know.
        default: The value while it is unset; None if this release does not know it.
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
    """How a graph is kept small and fast without a command each time.

    Attributes:
        keep_commits: How many of the newest commits of each branch are kept in any case.
        keep_days: How old a commit has to be before it can expire.
    """

    optimize: OptimizeMode
    keep_commits: int
    keep_days: int


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How vectors are searched by an index.

    Attributes:
        exact: Whether no approximate index is used.
        probes: How many partitions of an index are looked into; 0 for as many as it takes until
            looking further changes nothing.
        refine: How many vectors are read for each row wanted, where an index has codes in the
            place of vectors.
    """

    exact: bool = False
    probes: int = 0
    refine: int = VECTOR_REFINE_FACTOR


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """How texts are embedded.

    Attributes:
        now_rows: How many rows a write embeds itself; those of a larger one wait.
        batch_size: How many texts a request has at most.
        requests_per_minute: At most so many by each process; 0 for no limit.
        timeout_seconds: For one request, and `deadline_seconds` for all of one write or run.
        openai_key: The variable with the key, as `${NAME}`, or `none`; so is `gemini_key`.
    """

    now_rows: int
    batch_size: int
    requests_per_minute: int
    timeout_seconds: float
    deadline_seconds: float
    openai_url: str
    openai_key: str
    gemini_url: str
    gemini_key: str


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a graph, typed."""

    maintenance: MaintenanceSettings
    query: QueryLimits
    embedding: EmbeddingSettings
    search: SearchSettings

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
            _embedding_settings(stored),
            SearchSettings(
                exact=value_of(stored, SettingKey.SEARCH_EXACT) == Switch.ON,
                probes=int(value_of(stored, SettingKey.SEARCH_PROBES)),
                refine=int(value_of(stored, SettingKey.SEARCH_REFINE)),
            ),
        )


def _embedding_settings(stored: Mapping[str, object]) -> EmbeddingSettings:
    def seconds(key: SettingKey) -> float:
        return require_duration(value_of(stored, key), str(key)).total_seconds()

    return EmbeddingSettings(
        now_rows=int(value_of(stored, SettingKey.EMBEDDING_NOW_ROWS)),
        batch_size=int(value_of(stored, SettingKey.EMBEDDING_BATCH_SIZE)),
        requests_per_minute=int(value_of(stored, SettingKey.EMBEDDING_RATE)),
        timeout_seconds=seconds(SettingKey.EMBEDDING_TIMEOUT),
        deadline_seconds=seconds(SettingKey.EMBEDDING_DEADLINE),
        openai_url=str(value_of(stored, SettingKey.EMBEDDING_OPENAI_URL)),
        openai_key=str(value_of(stored, SettingKey.EMBEDDING_OPENAI_KEY)),
        gemini_url=str(value_of(stored, SettingKey.EMBEDDING_GEMINI_URL)),
        gemini_key=str(value_of(stored, SettingKey.EMBEDDING_GEMINI_KEY)),
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
        message = f"the setting {key} has to be {kind.accepted}, and {_show(key, value)} is not"
        hint = f"its default is {kind.default}; 'omnigraph settings list' shows every setting"
        raise InvalidParameterError(message, hint=hint, name=str(key), accepted=kind.accepted)
    assert isinstance(value, str | int), "no kind accepts anything else"
    return value


def value_of(stored: Mapping[str, object], key: SettingKey) -> SettingValue:
    """The value of one setting, stored or by default.

    Raises:
        FormatError: the stored value is not one that this release accepts. It is not replaced by
            the default: a default could expire commits that the stored value keeps.
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
    if warning is not None and isinstance(kind, _Key):
        value = "(hidden)"
    return Setting(str(key), value, kind.default, source, kind.accepted, warning)


def _describe_unknown(key: str, value: object) -> Setting:
    warning = f"this release does not know the setting {key}, and ignores it"
    return Setting(key, value, None, SettingSource.GRAPH, None, warning)


def _misfit(key: SettingKey, value: object) -> str:
    accepted = _KINDS[key].accepted
    return f"the setting {key} is {_show(key, value)}, and this release accepts {accepted}"


def _show(key: SettingKey, value: object) -> str:
    """A value in a message; what is not the name of a variable may be a key."""
    return "what was given" if isinstance(_KINDS[key], _Key) else f"{value!r:.100}"
