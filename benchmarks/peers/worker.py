"""A peer's process: it loads once, then does one task after another, one line of JSON each.

This runs in the peers' environment, by its path: it imports nothing of ours but its neighbours.
"""

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def main(peer: str, place: str) -> None:
    """Say hello with a version when loaded, then answer each line of standard input."""
    sys.path.insert(0, str(Path(__file__).parent))
    # The peers print as they like; only our lines may reach the pipe.
    lines, sys.stdout = sys.stdout, sys.stderr

    def say(**what: Any) -> None:
        print(json.dumps(what, default=str), file=lines, flush=True)

    try:
        module = importlib.import_module(peer)
        ask = module.load(Path(place))
    except Exception as cause:  # noqa: BLE001  # whatever a peer raises is its reason to be absent
        say(failed=_reason(cause))
        return
    say(version=module.VERSION)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            start = time.perf_counter()
            found = ask(asked["task"], asked["text"])
            seconds = time.perf_counter() - start
            rows = [] if found is None else [list(row.values()) for row in found.to_pylist()]
            say(seconds=seconds, rows=rows)
        except Exception as cause:  # noqa: BLE001
            say(failed=_reason(cause))


def _reason(cause: Exception) -> str:
    return f"{type(cause).__name__}: {cause}".partition("\n")[0][:160]


if __name__ == "__main__":
    main(*sys.argv[1:])
