"""Azurite: Microsoft's emulator of Azure's object store, on loopback, where it is installed.

`make azurite` installs it. Its data is in a directory that ends with the block, and the kernel ends
the server with the process that started it.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import shutil
import socket
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from itertools import count
from pathlib import Path
from typing import Final
from urllib.request import Request, urlopen

from tests.support.cluster import end_with
from tests.support.sources import REPOSITORY

VARIABLE: Final = "OMNIGRAPH_TEST_AZURITE"
START_SECONDS_MAX: Final = 60
ACCOUNT: Final = "devstoreaccount1"
KEY: Final = base64.b64encode(b"a key that only tests use").decode()
_VERSION: Final = "2021-08-06"

_container_numbers = count(1)


@dataclass(frozen=True, slots=True)
class AzuriteServer:
    """A running server."""

    endpoint: str

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that make obstore, here or in a child process, use this server."""
        return {
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": self.endpoint,
            "AZURE_ALLOW_HTTP": "true",
        }

    def create_container(self) -> str:
        """Create an empty container, under a name this server has not seen."""
        name = f"test-{os.getpid()}-{next(_container_numbers)}"
        headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        lines = ["PUT", *[""] * 11, *(f"{key}:{value}" for key, value in headers.items())]
        text = "\n".join([*lines, f"/{ACCOUNT}/{ACCOUNT}/{name}", "restype:container"])
        digest = hmac.digest(base64.b64decode(KEY), text.encode(), hashlib.sha256)
        headers["Authorization"] = f"SharedKey {ACCOUNT}:{base64.b64encode(digest).decode()}"
        url = f"{self.endpoint}/{name}?restype=container"
        with urlopen(Request(url, method="PUT", headers=headers), timeout=30):
            return name


def find_azurite() -> Path | None:
    """The program that the variable names, that `make azurite` has installed, or another one."""
    named = os.environ.get(VARIABLE)
    built = REPOSITORY / "build" / "azurite" / "node_modules" / ".bin" / "azurite-blob"
    found = named or (str(built) if built.exists() else shutil.which("azurite-blob"))
    return Path(found) if found else None


@contextmanager
def run_azurite(program: Path) -> Iterator[AzuriteServer]:
    """Run a server on a free port during the block."""
    with tempfile.TemporaryDirectory(prefix="azurite-") as folder:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = Path(folder) / "log"
        options = ["--silent", "--disableTelemetry", "--skipApiVersionCheck"]
        with log.open("wb") as output, warnings.catch_warnings():
            # The fork that Lance warns of is followed by exec, and never runs Lance.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            process = subprocess.Popen(
                [program, *options, "--blobPort", str(port), "--location", f"{folder}/data"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={"PATH": os.environ["PATH"], "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
                preexec_fn=partial(end_with, os.getpid()),
            )
        try:
            _await_port(port, process, log)
            yield AzuriteServer(f"http://127.0.0.1:{port}/{ACCOUNT}")
        finally:
            process.terminate()
            process.wait(timeout=60)


def _await_port(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5):
                return
        except OSError as cause:
            if process.poll() is not None or time.monotonic() > deadline:
                message = f"Azurite did not start:\n{log.read_text()[-2000:]}"
                raise RuntimeError(message) from cause
            time.sleep(0.1)
