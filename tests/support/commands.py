"""The command line run as a person runs it, and what it said."""

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.support.warm import omnigraph_program


@dataclass(frozen=True, slots=True)
class Answer:
    """What one run of the command said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """Standard error on one line: where it was folded does not matter."""
        return " ".join(self.err.split())


def command(*arguments: str) -> list[str]:
    """What starts the command in a process of its own, with all its libraries loaded already."""
    return [str(omnigraph_program()), *arguments]


def omnigraph(
    *arguments: str, env: dict[str, str] | None = None, given: bytes | None = None
) -> Answer:
    """Run the command in a process of its own; a failure may never show a stack."""
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "100", **(env or {})}
    run = subprocess.run(
        command(*arguments),
        capture_output=True,
        check=False,
        env=environment,
        input=given,
        timeout=60,
    )
    answer = Answer(run.returncode, run.stdout.decode(), run.stderr.decode())
    assert "Traceback" not in answer.err, answer.err
    return answer
