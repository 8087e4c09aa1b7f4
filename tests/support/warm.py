"""The `omnigraph` command run by a starter, whose libraries are imported already.

Nearly all the time of a short command is spent importing them.
"""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from omnigraph.cli import starter
from omnigraph.warm import place

# As pip installs it; this one exists in every checkout.
_COMMAND: Final = """\
#!{python}
import re
from omnigraph.__main__ import run
run()
"""

# Without what a site adds: tests run thousands of commands. It has its own starter, wherever the
# cache of the command is.
_FAST_COMMAND: Final = """\
#!{python} -IS
import os, sys
sys.path.append({source!r})
from omnigraph.warm import client, place
place.directory, place.identity = (lambda: {directory!r}), (lambda: {identity!r})
place.socket_name = lambda: {name!r}
client.run_warm()
os.execv({python!r}, [{python!r}, "-m", "omnigraph", *sys.argv[1:]])
"""


@dataclass(frozen=True, slots=True)
class Home:
    """A user's home with a starter of its own, and the command as this user runs it."""

    folder: Path

    @property
    def program(self) -> Path:
        return self.folder / "omnigraph"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache"), "OMNIGRAPH_WARM": ""}

    def start(self, *arguments: str, variables: Mapping[str, str] | None = None) -> Any:
        """Start a starter, with some more variables; returns what the command prints."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self._write(self.program, _COMMAND.format(python=sys.executable))
        run = subprocess.run(
            [self.program, "warm", "start", "--json", *arguments],
            capture_output=True,
            text=True,
            check=False,
            env={**self.environment, **(variables or {})},
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def status(self) -> Any:
        """What `warm status` prints."""
        answer = subprocess.run(
            [self.program, "warm", "status", "--json"],
            stdout=subprocess.PIPE,
            check=True,
            env=self.environment,
            timeout=60,
        )
        return json.loads(answer.stdout)

    def write_fast_program(self) -> Path:
        """The command without the site of this Python."""
        text = _FAST_COMMAND.format(
            python=sys.executable,
            source=str(Path(starter.__file__).parents[2]),
            directory=str(self.folder / "cache" / "omnigraph" / "warm"),
            identity=place.identity(),
            name=place.socket_name(),
        )
        path = self.folder / "fast" / "omnigraph"
        path.parent.mkdir()
        self._write(path, text)
        return path

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)


@cache
def omnigraph_program() -> Path:
    """A program that works like `omnigraph`, alone in its folder, until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-warm-"))
    # A starter whose socket is gone ends by itself.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    home = Home(folder)
    home.start()
    program = home.write_fast_program()
    subprocess.run([program, "version"], check=True, stdout=subprocess.DEVNULL)
    # It counts a command when the attendant has ended, a moment after the client.
    deadline = time.monotonic() + 30
    while home.status()["commands"] != 1:
        assert time.monotonic() < deadline, "commands of tests are run by the starter"
    return program
