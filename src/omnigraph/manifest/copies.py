"""The record of a copy: of which graph this one is a copy, how far it came, and who is copying.

The target of the first copy cannot be opened before it is complete: the newest version of its
manifest lacks the file with the state until the end (docs/decisions/0038). The record says why.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Final

from omnigraph.errors import ErrorCode, FormatError, GraphNotFoundError
from omnigraph.manifest.layout import COPY
from omnigraph.manifest.rows import corruption_error
from omnigraph.storage.objects import Objects, StoredObject
from omnigraph.storage.store import Store

_FORMAT: Final = 1
_MAIN: Final = "main"


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """What a target knows of its copies.

    Attributes:
        source: The graph that it is a copy of.
        completed_at: When it was complete for the last time; None if it never was.
        ends: By ref of the manifest, the newest version that was copied, or is being copied.
        run: The copy at work, or a killed one; None if the last one came to its end.
        owner: The process of the run, as it says itself.
        lease_until: When another process may take over.
    """

    source: str
    completed_at: datetime | None = None
    ends: Mapping[str | None, int] = field(default_factory=dict)
    run: str | None = None
    owner: Mapping[str, Any] | None = None
    lease_until: datetime | None = None


def read_record(objects: Objects) -> tuple[CopyRecord, StoredObject] | None:
    """The record of a target, and the stored object; None if it has none."""
    stored = objects.read(COPY)
    return None if stored is None else (_decode(stored.data), stored)


def write_record(objects: Objects, record: CopyRecord, before: StoredObject | None) -> bool:
    """Store the record, unless somebody else changed it."""
    if before is None:
        return objects.put_if_absent(COPY, _encode(record))
    return objects.update(COPY, _encode(record), expecting=before.tag)


def require_complete(store: Store) -> None:
    """Explain why a graph cannot be opened, if it is a copy that never was complete."""
    found = read_record(store.objects)
    if found is not None and found[0].completed_at is None:
        source, target = found[0].source, store.root.uri
        message = f"{target} is an unfinished copy of {source}"
        hint = f"run 'omnigraph copy {source} {target}' again: it continues"
        raise GraphNotFoundError(message, hint=hint)


def _encode(record: CopyRecord) -> bytes:
    ends = {ref or _MAIN: version for ref, version in record.ends.items()}
    fields = {
        "format": _FORMAT,
        **asdict(replace(record, ends={})),
        "ends": ends,
        "completed_at": record.completed_at and record.completed_at.isoformat(),
        "lease_until": record.lease_until and record.lease_until.isoformat(),
    }
    return json.dumps(fields, indent=1).encode()


def _decode(data: bytes) -> CopyRecord:
    try:
        fields = json.loads(data)
        if (found := int(fields["format"])) > _FORMAT:
            message = f"{COPY} has format {found}, and this release reads {_FORMAT}"
            code = ErrorCode.FORMAT_TOO_NEW
            raise FormatError(
                message, hint="upgrade omnigraph", code=code, found=found, supported=_FORMAT
            )
        return CopyRecord(
            str(fields["source"]),
            _time(fields["completed_at"]),
            {None if ref == _MAIN else ref: int(v) for ref, v in fields["ends"].items()},
            fields["run"],
            fields["owner"],
            _time(fields["lease_until"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as cause:
        message = f"the record of copies, {COPY}, cannot be read"
        raise corruption_error(message) from cause


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text).astimezone(UTC)
