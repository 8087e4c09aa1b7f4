"""Flows: through how many files one call of the API runs, in a fresh process and the next time.

    python -m tools.flows

Each row counts the files of the package whose functions were called, the functions, the top-level
packages, and how often the execution moved from one file to another.
"""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

_PROGRAM = """
import sys
from tools.flows import run_flow
run_flow(sys.argv[1], sys.argv[2])
"""

SCHEMA = """
node Person { name: String @key  age: I64? }
node City { name: String @key }
edge LivesIn: Person -> City
"""
INSERT = "query add($name: String) { insert Person { name: $name } }"
HOP = 'query q() { match { $p: Person  $p livesIn $c  $c.name = "Rome" } return { $p.name } }'


@dataclass(slots=True)
class Flow:
    """What one call ran through."""

    files: int = 0
    functions: int = 0
    packages: int = 0
    switches: int = 0
    names: list[str] = field(default_factory=list)


def trace(call: Callable[[], object]) -> Flow:
    """Run a call, and count what of the package it executes."""
    import omnigraph

    root = str(Path(omnigraph.__file__).parent) + "/"
    functions: set[tuple[str, int]] = set()
    files: dict[str, None] = {}
    switches, last = 0, ""

    def follow(frame: FrameType, event: str, argument: Any) -> None:  # noqa: ARG001
        nonlocal switches, last
        code = frame.f_code
        # Modules and the bodies of classes run when they are imported.
        is_function = code.co_flags & inspect.CO_OPTIMIZED
        if event != "call" or not is_function or not code.co_filename.startswith(root):
            return
        name = code.co_filename.removeprefix(root)
        functions.add((name, code.co_firstlineno))
        files[name] = None
        if name != last:
            switches, last = switches + 1, name

    sys.setprofile(follow)
    try:
        call()
    finally:
        sys.setprofile(None)
    packages = {name.partition("/")[0] for name in files}
    return Flow(len(files), len(functions), len(packages), switches, sorted(files))


def run_flow(name: str, uri: str) -> None:
    """Trace a flow twice in this process, and print both as JSON."""
    import omnigraph

    graph = omnigraph.open(uri)
    calls: dict[str, Callable[[int], object]] = {
        "mutate": lambda n: graph.mutate(INSERT, {"name": f"{name}{n}"}),
        "query": lambda n: graph.query(HOP).rows(),  # noqa: ARG005
        "load": lambda n: graph.load({"Person": [{"name": f"load{n}"}]}, mode="merge"),
    }
    flows = [trace(lambda: calls[name](number)) for number in range(2)]  # noqa: B023
    print(json.dumps([asdict(flow) for flow in flows]))  # noqa: T201


def measure(uri: str) -> dict[str, tuple[Flow, Flow]]:
    """Every flow in a process of its own, on a new graph at this place."""
    import omnigraph

    graph = omnigraph.init(uri, schema=SCHEMA)
    rows = {"Person": [{"name": "Ada"}], "City": [{"name": "Rome"}]}
    graph.load({**rows, "LivesIn": [{"from": "Ada", "to": "Rome"}]})
    found = {}
    for name in ("mutate", "query", "load"):
        ran = subprocess.run(
            [sys.executable, "-c", _PROGRAM, name, uri], capture_output=True, check=True, text=True
        )
        first, second = (Flow(**flow) for flow in json.loads(ran.stdout))
        found[name] = first, second
    return found


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        flows = measure(f"{folder}/flows.omni")
    print(f"{'call':8} {'':6} {'files':>6} {'functions':>10} {'packages':>9} {'switches':>9}")  # noqa: T201
    for name, both in flows.items():
        for label, flow in zip(("first", "next"), both, strict=True):
            counts = f"{flow.files:6} {flow.functions:10} {flow.packages:9} {flow.switches:9}"
            print(f"{name:8} {label:6} {counts}")  # noqa: T201


if __name__ == "__main__":
    main()
