"""Logs: one line of JSON for each record, whatever is in it."""

from __future__ import annotations

import json
import logging
from typing import Any, Final

_FIELDS: Final = "fields"


class JsonLines(logging.Formatter):
    """Formats a record as one line of JSON; a stack is a field of it."""

    def format(self, record: logging.LogRecord) -> str:
        r"""One line.

        >>> record = logging.LogRecord("a", 30, "", 0, "two\nlines", (), None)
        >>> JsonLines().format(record)
        '{"level": "warning", "logger": "a", "message": "two\\nlines"}'
        """
        fields: dict[str, Any] | None = getattr(record, _FIELDS, None)
        if fields is None:
            fields = {"message": record.getMessage()}
        described = {"level": record.levelname.lower(), "logger": record.name, **fields}
        if record.exc_info:
            described["stack"] = self.formatException(record.exc_info)
        return json.dumps(described, default=str)


def write_fields(log: logging.Logger, level: int, fields: dict[str, Any], **more: Any) -> None:
    """Log values by their names."""
    log.log(level, "%s", json.dumps(fields, default=str), extra={_FIELDS: fields}, **more)
