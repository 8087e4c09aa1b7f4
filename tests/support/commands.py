"""Runs the command line as a user does, and returns its output."""

import json
import os
import subprocess
from dataclasses import dataclass
from typing import Any

from tests.support.warm import omnigraph_program


@dataclass(frozen=True, slots=True)
class Answer:
    """The exit code and the output of one run of the command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def said(self) -> str:
        """Standard error on one line, so that line breaks do not matter."""
        return " ".join(self.err.split())


def command(*arguments: str) -> list[str]:
    """The arguments that start the command in its own process, with its libraries preloaded."""
    return [str(omnigraph_program()), *arguments]


def omnigraph(
    *arguments: str, env: dict[str, str] | None = None, given: bytes | None = None
) -> Answer:
    """Run the command in its own process; a failure may never print a traceback."""
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
