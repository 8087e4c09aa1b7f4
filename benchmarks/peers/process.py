"""Talking to a peer in its own process: it is started once, killed when it takes too long."""

import json
import subprocess
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from benchmarks.peers.install import python
from benchmarks.rounds import Answer, UnableError

WORKER: Final = Path(__file__).parent / "worker.py"
LOAD_SECONDS_MAX: Final = 180
ANSWER_SECONDS_MAX: Final = 60


class Peer:
    """One peer; its process is started again after it had to be killed."""

    def __init__(self, module: str, place: Path) -> None:
        self.version = module
        self._module = module
        self._place = place
        self._process: subprocess.Popen[str] | None = None
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._is_absent = ""

    def ask(self, task: str, text: str = "", *, seconds_max: float = ANSWER_SECONDS_MAX) -> Answer:
        """The peer's own time and rows.

        Raises:
            UnableError: it is not installed, refuses the task, or took too long.
        """
        process = self._started()
        assert process.stdin is not None
        print(json.dumps({"task": task, "text": text}), file=process.stdin, flush=True)
        said = self._heard(seconds_max)
        return said["seconds"], said["rows"]

    def close(self) -> None:
        """End its process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._is_absent:
            raise UnableError(self._is_absent)
        if self._process is None:
            if not python().exists():
                self._is_absent = "not installed"
                raise UnableError(self._is_absent)
            self._process = subprocess.Popen(
                [str(python()), str(WORKER), self._module, str(self._place)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self._lines = SimpleQueue()
            pipe = self._process.stdout, self._lines
            threading.Thread(target=_forward, args=pipe, daemon=True).start()
            try:
                self.version = self._heard(LOAD_SECONDS_MAX)["version"]
            except UnableError as cause:
                self._is_absent = f"absent: {cause}"
                raise
        return self._process

    def _heard(self, seconds_max: float) -> dict[str, Any]:
        try:
            line = self._lines.get(timeout=seconds_max)
        except Empty:
            self.close()
            message = f"more than {seconds_max:.0f} s"
            raise UnableError(message) from None
        if not line:
            self.close()
            message = "its process died"
            raise UnableError(message)
        said: dict[str, Any] = json.loads(line)
        if "failed" in said:
            raise UnableError(said["failed"])
        return said


def _forward(pipe: Any, lines: "SimpleQueue[str]") -> None:
    for line in pipe:
        lines.put(line)
    lines.put("")
