"""A peer's process: it loads the rows once, then answers questions, one line of JSON each.

This runs in the peers' environment, by its path: it imports nothing of ours but its neighbours.
"""

import importlib
import json
import sys
import time
from pathlib import Path
from typing import Any


def main(peer: str, rows: str) -> None:
    """Say hello with a version when loaded, then answer each line of standard input."""
    sys.path.insert(0, str(Path(__file__).parent))
    # The peers print as they like; only our lines may reach the pipe.
    lines, sys.stdout = sys.stdout, sys.stderr

    def say(**what: Any) -> None:
        print(json.dumps(what, default=str), file=lines, flush=True)

    try:
        module = importlib.import_module(peer)
        ask = module.load(Path(rows))
    except Exception as cause:  # noqa: BLE001  # whatever a peer raises is its reason to be absent
        say(failed=_reason(cause))
        return
    say(version=module.VERSION)
    for line in sys.stdin:
        question = json.loads(line)
        try:
            start = time.perf_counter()
            found = ask(question["number"], question["cypher"])
            seconds = time.perf_counter() - start
            say(seconds=seconds, rows=[list(row.values()) for row in found.to_pylist()])
        except Exception as cause:  # noqa: BLE001
            say(failed=_reason(cause))


def _reason(cause: Exception) -> str:
    return f"{type(cause).__name__}: {cause}".partition("\n")[0][:160]


if __name__ == "__main__":
    main(*sys.argv[1:])
