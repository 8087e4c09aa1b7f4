"""A server in a process of its own, which can be killed and started again at the same address."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from omnigraph.clock import SystemClock
from omnigraph.server.tokens import TokenFile

START_SECONDS_MAX = 90


class ServerProcess:
    """`omnigraph serve` of one graph, called world, until the block ends."""

    def __init__(self, graph: Path, folder: Path, settings: str = "") -> None:
        self._folder = folder
        self._reservation = _reserve_port()
        self.port = int(self._reservation.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._config = folder / "server.toml"
        state = folder / "state"
        self._config.write_text(
            f'port = {self.port}\nstate = "{state}"\nstop_seconds = 20\n'
            f'[graphs.world]\nuri = "{graph}"\n{settings}'
        )
        self.token, _ = TokenFile(state / "tokens.json", SystemClock()).create("ada")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process that runs now."""
        assert self._process is not None, "it is started"
        return self._process.pid

    def start(self) -> None:
        """Start it, and wait until it takes requests."""
        command = [sys.executable, "-m", "omnigraph", "serve", "--config", str(self._config)]
        environment = dict(os.environ)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, stderr=log, stdout=log, env=environment)
        give_up = time.monotonic() + START_SECONDS_MAX
        while time.monotonic() < give_up:
            assert self._process.poll() is None, self.log()
            try:
                if httpx.get(f"{self.url}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.05)
        raise AssertionError(self.log())

    def kill(self) -> None:
        """End it without warning."""
        assert self._process is not None, "it is started"
        self._process.send_signal(signal.SIGKILL)
        self._process.wait(30)

    def stop(self) -> int:
        """Ask it to end, and wait; its exit code."""
        assert self._process is not None, "it is started"
        self._process.terminate()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def ask(self, method: str, route: str, **more: Any) -> httpx.Response:
        """The answer to a request about the graph, by the actor ada."""
        url = f"{self.url}/graphs/world/{route}"
        return httpx.request(method, url, headers=self._headers(), timeout=60, **more)

    def stream(self, route: str, headers: dict[str, str]) -> AbstractContextManager[httpx.Response]:
        """The answer to a request about the graph, while it arrives."""
        own = {**self._headers(), **headers}
        return httpx.stream("GET", f"{self.url}/graphs/world/{route}", headers=own, timeout=60)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def wait_until_running(self, kind: str) -> None:
        """Wait until some request of a kind runs."""
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            if f'omnigraph_running{{kind="{kind}"}} 1.0' in httpx.get(f"{self.url}/metrics").text:
                return
            time.sleep(0.01)
        raise AssertionError(self.log())

    def resident_bytes(self) -> int:
        """The memory that it holds."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def log(self) -> str:
        """All that it has written."""
        return (self._folder / "server.log").read_text(errors="replace")[-4_000:]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if self._process is not None and self._process.poll() is None:
                self.stop() if kind is None else self.kill()
        finally:
            self._reservation.close()


def _reserve_port() -> socket.socket:
    """A socket that keeps a free port for a server, also while that is killed and started again.

    It does not listen, so that the server can. Without it, the system may give the port to another
    process, which would answer in the server's place, or to a client that connects to itself.
    """
    own = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.bind(("127.0.0.1", 0))
    return own
