"""Settings of a server: a TOML file, checked; what is wrong is reported by line and key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from omnigraph.errors import InvalidInputError, NotFoundError, OmnigraphError
from omnigraph.model.query_limits import require_max_rows, require_memory, require_timeout
from omnigraph.model.toml_lines import find_line

GRAPH_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def _check(require: Any, name: str) -> Any:
    def validate(value: Any) -> Any:
        try:
            require(value, name)
        except OmnigraphError as error:
            raise ValueError(error.message) from error
        return value

    return AfterValidator(validate)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class GraphSection(_Section):
    """One served graph: `[graphs.NAME]`."""

    uri: str
    read_only: bool = False
    policy: Path | None = None


class LimitSection(_Section):
    """Admission and budgets: `[limits]`. Counts are of requests at once."""

    reads: int = Field(default=16, ge=1)
    writes: int = Field(default=8, ge=1)
    reads_per_actor: int = Field(default=12, ge=1)
    writes_per_actor: int = Field(default=6, ge=1)
    waiting: int = Field(default=256, ge=0)
    wait_seconds: float = Field(default=10.0, ge=0)
    body_bytes: int = Field(default=16 << 20, ge=1)
    load_bytes: int = Field(default=64 << 30, ge=1)
    direct_load_bytes: int = Field(default=8 << 20, ge=0)
    body_seconds: float = Field(default=300.0, gt=0)
    connections: int = Field(default=512, ge=1)
    unsent_bytes: int = Field(default=256 << 20, ge=0)
    jobs: int = Field(default=64, ge=1)
    jobs_kept: int = Field(default=10_000, ge=1)
    jobs_kept_days: float = Field(default=30.0, gt=0)
    expansion: int = Field(default=100, ge=1)
    query_timeout: Annotated[str | float, _check(require_timeout, "query_timeout")] = "60s"
    query_memory: Annotated[str | int, _check(require_memory, "query_memory")] = "2GiB"
    query_max_rows: Annotated[str | int, _check(require_max_rows, "query_max_rows")] = 10_000_000


class JwtSection(_Section):
    """Tokens of an identity provider: `[jwt]`."""

    jwks: str
    issuer: str
    audience: str
    actor_claim: str = "sub"
    algorithms: tuple[str, ...] = ("RS256", "ES256")


class BackgroundSection(_Section):
    """What the server does by itself: `[background]`. 0 is never."""

    recovery_seconds: float = Field(default=60.0, ge=0)
    optimize_seconds: float = Field(default=0.0, ge=0)
    cleanup_seconds: float = Field(default=0.0, ge=0)


class ServerSettings(BaseSettings):
    """All settings. `OMNIGRAPH_SERVER_PORT` and the like override the file."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="OMNIGRAPH_SERVER_",
        env_nested_delimiter="__",
    )

    host: str = "127.0.0.1"
    port: int = Field(default=8080, ge=0, le=65_535)
    state: Path = Path("omnigraph-server")
    tokens: Path | None = None
    policy: Path | None = None
    allow_anonymous: bool = False
    origins: tuple[str, ...] = ()
    stop_seconds: float = Field(default=30.0, ge=0)
    graphs: dict[str, GraphSection] = Field(default_factory=dict)
    limits: LimitSection = LimitSection()
    jwt: JwtSection | None = None
    background: BackgroundSection = BackgroundSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003  # the signature is pydantic's
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment first, then the file."""
        return env_settings, init_settings

    @property
    def token_file(self) -> Path:
        """The file of the tokens."""
        return self.state / "tokens.json" if self.tokens is None else self.tokens


def read_settings(path: Path | None, **overrides: object) -> ServerSettings:
    """The settings of a file, of the environment, and those given here, which come first."""
    text, fields = "", dict[str, Any]()
    if path is not None:
        text = _read(path)
        try:
            fields = tomllib.loads(text)
        except tomllib.TOMLDecodeError as cause:
            message = f"{path} is not TOML: {cause}"
            raise InvalidInputError(message, hint="see docs/serving.md") from cause
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        settings = ServerSettings(**{**fields, **given})
    except ValidationError as cause:
        raise _wrong_settings(path, text, cause) from cause
    strange = [name for name in settings.graphs if GRAPH_NAME.fullmatch(name) is None]
    if strange:
        message = f"{strange[0]!r} cannot be the name of a graph in an address"
        hint = "names have letters, digits, '_', '.' and '-', and at most 63 of them"
        raise InvalidInputError(message, hint=hint)
    return settings


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as cause:
        message = f"file {path} does not exist"
        raise NotFoundError(message, hint="name a TOML file with --config") from cause
    except (OSError, UnicodeDecodeError) as cause:
        message = f"{path} cannot be read: {cause}"
        raise InvalidInputError(message, hint="name a TOML file with --config") from cause


def _wrong_settings(path: Path | None, text: str, cause: ValidationError) -> InvalidInputError:
    faults = []
    for fault in cause.errors():
        keys = [str(key) for key in fault["loc"]]
        line = find_line(text, keys)
        place = f"{path}:{line}: " if path is not None and line is not None else ""
        message = "no such setting" if fault["type"] == "extra_forbidden" else fault["msg"]
        faults.append(f"{place}{'.'.join(keys)}: {message}")
    count = "1 setting is" if len(faults) == 1 else f"{len(faults)} settings are"
    message = "\n".join([f"{count} wrong", *(f"  {fault}" for fault in faults)])
    return InvalidInputError(message, hint="see docs/serving.md", faults=faults)
