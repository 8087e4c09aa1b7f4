"""What the peers that keep tables write: people, one row and one commit at a time."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa

SCHEMA = pa.schema([pa.field("name", pa.string()), pa.field("age", pa.int64())])


def tasks(append: Callable[[pa.Table], object], count: Callable[[], int]) -> Callable[..., Any]:
    """The two tasks of a writer: insert the person of this name, and count."""

    def run(task: str, text: str) -> pa.Table | None:
        if task == "count":
            return pa.table({"rows": [count()]})
        append(pa.table({"name": [text], "age": [1]}, schema=SCHEMA))
        return None

    return run
