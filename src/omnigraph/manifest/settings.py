"""Stored settings: one object that every change replaces on condition (docs/decisions/0014)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from omnigraph.clock import Clock, back_off
from omnigraph.errors import ConflictError, ErrorCode, FormatError, OmnigraphError, StorageError
from omnigraph.limits import SETTINGS_ATTEMPTS_MAX, SETTINGS_BACKOFF_SECONDS_MAX
from omnigraph.manifest.layout import SETTINGS
from omnigraph.model.settings import SettingKey, Settings, require_setting
from omnigraph.storage.objects import Objects, StoredObject

SETTINGS_AGE_SECONDS_MAX: Final = 10.0
"""How long a graph handle uses settings before it reads them again."""


_FORMAT: Final = 1
_Values: TypeAlias = "Mapping[str, object]"


@dataclass(frozen=True, slots=True)
class _Record:
    """The stored object, with what newer releases added to it."""

    fields: Mapping[str, Any]
    tag: str | None

    @property
    def values(self) -> _Values:
        values: _Values = self.fields["settings"]
        return values


class StoredSettings:
    """The settings of one graph. Cheap to ask: `current` reads the object once in some seconds."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock
        self._lock = threading.Lock()
        self._known: tuple[datetime, Settings] | None = None
        self._reading: threading.Thread | None = None

    def current(self) -> Settings:
        """The settings, at most `SETTINGS_AGE_SECONDS_MAX` old."""
        with self._lock:
            reading, self._reading = self._reading, None
        if reading is not None:
            reading.join()
        if (known := self._fresh()) is not None:
            return known
        now = self._clock.now()
        settings = Settings.of(self.read())
        with self._lock:
            self._known = (now, settings)
        return settings

    def start_reading(self) -> None:
        """Read the settings in another thread, unless they are known; `current` waits for it."""
        if self._objects.is_local or self._fresh() is not None:
            return
        with self._lock:
            if self._reading is None:
                self._reading = threading.Thread(target=self._read_ahead, daemon=True)
                self._reading.start()

    def _read_ahead(self) -> None:
        now = self._clock.now()
        # Whoever needs the settings reads them again, and raises what is wrong with them.
        with suppress(OmnigraphError):
            settings = Settings.of(self.read())
            with self._lock:
                self._known = (now, settings)

    def _fresh(self) -> Settings | None:
        now = self._clock.now()
        with self._lock:
            known = self._known
        # A clock that was set back must not make a value young again.
        if known and timedelta(0) <= now - known[0] < timedelta(seconds=SETTINGS_AGE_SECONDS_MAX):
            return known[1]
        return None

    def read(self) -> _Values:
        """The stored values by their keys, those of newer releases included; one request."""
        return MappingProxyType(dict(self._read_record().values))

    def set(self, key: SettingKey, value: object) -> None:
        """Store the value of a setting; concurrent changes of other settings are kept."""
        accepted = require_setting(key, value)
        self._change(lambda values: {**values, str(key): accepted})

    def unset(self, key: SettingKey) -> None:
        """Remove the stored value of a setting, so that its default holds."""
        self._change(lambda values: {name: values[name] for name in values if name != key})

    def _change(self, change: Callable[[_Values], _Values]) -> None:
        for attempt in range(SETTINGS_ATTEMPTS_MAX):
            record = self._read_record()
            values = change(record.values)
            if values == record.values or self._replace(record, values):
                with self._lock:
                    self._known = None
                return
            back_off(self._clock, attempt, seconds_max=SETTINGS_BACKOFF_SECONDS_MAX)
        message = f"other processes kept changing the settings, {SETTINGS}"
        raise ConflictError(message, hint="try again", code=ErrorCode.OBJECT_CHANGED)

    def _replace(self, record: _Record, values: _Values) -> bool:
        fields = {**record.fields, "settings": dict(values)}
        data = json.dumps(fields, indent=1, sort_keys=True).encode()
        if record.tag is None:
            return self._objects.put_if_absent(SETTINGS, data)
        return self._objects.update(SETTINGS, data, expecting=record.tag)

    def _read_record(self) -> _Record:
        stored = self._objects.read(SETTINGS)
        if stored is None:
            return _Record({"format": _FORMAT, "settings": {}}, None)
        return _decode(stored)


def _decode(stored: StoredObject) -> _Record:
    try:
        fields = json.loads(stored.data)
        found = int(fields["format"])
        is_mapping = isinstance(fields["settings"], dict)
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable_error() from cause
    if found > _FORMAT:
        message = f"the settings, {SETTINGS}, have format {found}, and this release reads {_FORMAT}"
        code = ErrorCode.FORMAT_TOO_NEW
        raise FormatError(
            message, hint="upgrade omnigraph", code=code, found=found, supported=_FORMAT
        )
    if not is_mapping:
        raise _unreadable_error()
    return _Record(fields, stored.tag)


def _unreadable_error() -> StorageError:
    message = f"the settings, {SETTINGS}, cannot be read"
    hint = f"restore {SETTINGS} from a backup, or delete it: then every setting has its default"
    return StorageError(message, hint=hint, code=ErrorCode.CORRUPTED)
