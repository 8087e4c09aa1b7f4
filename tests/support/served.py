"""A server in a thread of the test, on a free port of this machine."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from omnigraph.clock import SystemClock
from omnigraph.server.serve import GraphServer, listen
from omnigraph.server.service import GraphService
from omnigraph.server.settings import ServerSettings, read_settings
from omnigraph.server.tokens import TokenFile


@dataclass(frozen=True, slots=True)
class Served:
    """A server that runs: its address, its service, a token of the actor ada, and its end."""

    url: str
    service: GraphService
    token: str
    stop: Callable[[], None]

    def tokens(self) -> TokenFile:
        """The tokens of the server."""
        return TokenFile(self.service.settings.token_file, SystemClock())

    def client(self, token: str | None = "", **more: Any) -> httpx.Client:
        """A client with ada's token, another one, or none."""
        secret = self.token if token == "" else token
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30, **more)


def settings_for(folder: Path, graphs: dict[str, str], **more: Any) -> ServerSettings:
    """Settings with a state of their own, and graphs by name."""
    sections = {name: {"uri": uri} for name, uri in graphs.items()}
    # A browser may keep a connection open until then.
    more = {"stop_seconds": 5} | more
    return read_settings(None, state=folder / "state", graphs=sections, **more)


@contextmanager
def serving(settings: ServerSettings) -> Iterator[Served]:
    """A server for the block."""
    token, _ = TokenFile(settings.token_file, SystemClock()).create("ada")
    service = GraphService(settings)
    service.open()
    listener = listen("127.0.0.1", 0)
    server = GraphServer(service)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    give_up = time.monotonic() + 30
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        assert time.monotonic() < give_up, "the server did not start in time"
        time.sleep(0.01)

    def stop() -> None:
        server.should_exit = True
        thread.join(30)
        assert not thread.is_alive(), "the server did not stop"

    try:
        yield Served(f"http://127.0.0.1:{listener.getsockname()[1]}", service, token, stop)
    finally:
        stop()
        listener.close()
