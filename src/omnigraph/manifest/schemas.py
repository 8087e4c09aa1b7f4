"""Schemas by identity: immutable objects that commits refer to (docs/decisions/0005)."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

from omnigraph.errors import InvalidInputError
from omnigraph.limits import CATALOGS_MAX, STAGED_SECONDS_MAX
from omnigraph.manifest.layout import SCHEMAS
from omnigraph.manifest.rows import corruption_error
from omnigraph.schema import codec
from omnigraph.schema.accepted import AcceptedSchema
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.objects import Objects

_SCHEMA_PATH: Final = re.compile(rf"{SCHEMAS}/[0-9a-f]{{64}}\.json")


def keep(objects: Objects, schema: AcceptedSchema, *, now: datetime | None = None) -> str:
    """Store a schema under its identity, before any commit names it; storing it twice is allowed.

    Of several texts with the same meaning, the first one stored is kept.

    Args:
        now: The time, for writers: a schema that was stored long ago is stored once more, because
            `cleanup` removes old ones that no kept commit has.
    """
    record = {"format": 1, "catalog": codec.encode(schema.catalog), "text": schema.text}
    path, data = schema_path(schema.digest), json.dumps(record, indent=1).encode()
    if objects.put_if_absent(path, data) or now is None:
        return schema.digest
    written_at = objects.written_at(path)
    if written_at is None or now - written_at > timedelta(seconds=STAGED_SECONDS_MAX):
        stored = objects.read(path)
        objects.put(path, data if stored is None else stored.data)
    return schema.digest


def load(objects: Objects, digest: str) -> AcceptedSchema:
    """The schema with this identity."""
    path = schema_path(digest)
    stored = objects.read(path)
    if stored is None:
        message = f"the schema {path} is missing"
        raise corruption_error(message)
    try:
        record = json.loads(stored.data)
        schema = AcceptedSchema(codec.decode(record["catalog"]), record["text"])
    except (ValueError, KeyError, TypeError, InvalidInputError) as cause:
        message = f"the schema {path} cannot be read"
        raise corruption_error(message) from cause
    if schema.digest != digest:
        message = f"the schema {path} holds another schema, {schema.digest}"
        raise corruption_error(message)
    return schema


class Catalogs:
    """The catalogs of one graph by schema identity, each read once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.of = lru_cache(maxsize=CATALOGS_MAX)(self._load)

    def _load(self, digest: str) -> Catalog:
        return load(self._objects, digest).catalog


def is_schema_path(path: str) -> bool:
    """Whether a path in the folder of schemas is that of a stored schema.

    >>> is_schema_path(f"__schemas/{'0' * 64}.json"), is_schema_path("__schemas/schema.pg")
    (True, False)
    """
    return _SCHEMA_PATH.fullmatch(path) is not None


def schema_path(digest: str) -> str:
    """The path of a stored schema below the graph's root."""
    return f"{SCHEMAS}/{digest}.json"
