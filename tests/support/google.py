"""A stand-in for Google's object store on loopback: the requests of its XML interface that we make.

No emulator that can be installed has them: fake-gcs-server and others answer Google's JSON
interface, and obstore writes by the XML one. What is behind conditions is from Google's pages:
`x-goog-if-generation-match` compares generations, and 0 means that there is no such object.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

_WRITTEN: Final = "Thu, 01 Jan 2026 00:00:00 GMT"
_LISTED: Final = "2026-01-01T00:00:00.000Z"


@dataclass(slots=True)
class GoogleStore:
    """A running server; objects by bucket and key, with their generations."""

    endpoint: str = ""
    buckets: dict[str, dict[str, tuple[bytes, int]]] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    generation: int = 1_000

    @property
    def environment(self) -> dict[str, str]:
        """The variables that make obstore use this server."""
        return {"GOOGLE_BASE_URL": self.endpoint, "GOOGLE_BEARER_TOKEN": "any"}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self._answer(status, f"<Error><Code>{code}</Code></Error>".encode())

    def _run(self) -> None:
        store: GoogleStore = self.server.store  # type: ignore[attr-defined]
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        with store.lock:
            if bucket not in store.buckets:
                self._refuse(404, "NoSuchBucket")
                return
            objects = store.buckets[bucket]
            match self.command:
                case "GET" if not key:
                    self._list(objects, parse_qs(parts.query).get("prefix", [""])[0])
                case "GET" | "HEAD":
                    self._read(objects, key)
                case "PUT":
                    self._put(store, objects, key, data)
                case "DELETE" if key in objects:
                    del objects[key]
                    self._answer(204)
                case _:
                    self._refuse(404, "NoSuchKey")

    do_GET = do_HEAD = do_PUT = do_DELETE = _run

    def _list(self, objects: dict[str, tuple[bytes, int]], prefix: str) -> None:
        entries = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size>"
            f"<ETag>{escape(_tag(data))}</ETag><LastModified>{_LISTED}</LastModified></Contents>"
            for key, (data, _) in sorted(objects.items())
            if key.startswith(prefix)
        )
        self._answer(200, f"<ListBucketResult>{entries}</ListBucketResult>".encode())

    def _read(self, objects: dict[str, tuple[bytes, int]], key: str) -> None:
        if key not in objects:
            self._refuse(404, "NoSuchKey")
            return
        data, generation = objects[key]
        if self.headers.get("If-Match", _tag(data)) != _tag(data):
            self._refuse(412, "PreconditionFailed")
            return
        headers = {"ETag": _tag(data), "x_goog_generation": str(generation)}
        headers["Last_Modified"] = _WRITTEN
        if (wanted := self.headers.get("Range")) is None:
            self._answer(200, data, **headers)
            return
        first, last = (int(place) for place in wanted.removeprefix("bytes=").split("-"))
        headers["Content_Range"] = f"bytes {first}-{min(last, len(data) - 1)}/{len(data)}"
        self._answer(206, data[first : last + 1], **headers)

    def _put(
        self, store: GoogleStore, objects: dict[str, tuple[bytes, int]], key: str, data: bytes
    ) -> None:
        now = objects[key][1] if key in objects else 0
        if int(self.headers.get("x-goog-if-generation-match", now)) != now:
            self._refuse(412, "PreconditionFailed")
            return
        store.generation += 1
        objects[key] = data, store.generation
        self._answer(200, ETag=_tag(data), x_goog_generation=str(store.generation))

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _tag(data: bytes) -> str:
    return f'"{md5(data, usedforsecurity=False).hexdigest()}"'


@contextmanager
def run_google() -> Iterator[GoogleStore]:
    """Run a server on a free loopback port during the block."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        store = GoogleStore(f"http://127.0.0.1:{server.server_port}")
        server.store = store  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield store
        server.shutdown()
