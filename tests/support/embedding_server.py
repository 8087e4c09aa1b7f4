"""A server on loopback that speaks the wire formats of embedding providers, with faults."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from omnigraph.embedding.providers.mock import MockProvider


@dataclass
class EmbeddingServer:
    """What the server was asked for, and what it does wrong next.

    Attributes:
        faults: Taken from the front, one for each request: a status, `slow`, `cut`, `short`,
            `nan`, `zero`, `few`, `shuffled`, `text`, or `ok`.
        texts: How often each text was asked for, in requests that were answered.
    """

    url: str = ""
    faults: list[str | int] = field(default_factory=list)
    retry_after: str | None = None
    texts: Counter[str] = field(default_factory=Counter)
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    times: list[float] = field(default_factory=list)
    refusal: str = "refused"
    delay: float = 0.0


def _vectors(texts: list[str], dimension: int, fault: str | int) -> list[list[float]]:
    vectors: list[list[float]] = MockProvider("server").embed(texts, dimension).tolist()
    match fault:
        case "short":
            vectors[0] = vectors[0][:-1]
        case "nan":
            vectors[0][0] = float("nan")
        case "zero":
            vectors[0] = [0.0] * dimension
        case "few":
            vectors.pop()
        case _:
            pass
    return vectors


@contextmanager
def embedding_server() -> Iterator[EmbeddingServer]:
    state = EmbeddingServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(body)
            state.times.append(time.monotonic())
            key = self.headers.get("Authorization") or self.headers.get("x-goog-api-key")
            if key:
                state.keys.add(key)
            fault = state.faults.pop(0) if state.faults else "ok"
            time.sleep(state.delay)
            if isinstance(fault, int):
                return self._refuse(fault)
            if fault == "cut":
                self.connection.close()
                return None
            if fault == "slow":
                time.sleep(1.0)
            if fault == "text":
                return self._answer(b"<html>not an api</html>")
            return self._answer(json.dumps(self._result(body, fault)).encode())

        def _result(self, body: dict[str, Any], fault: str) -> dict[str, Any]:
            if "requests" in body:
                texts = [each["content"]["parts"][0]["text"] for each in body["requests"]]
                vectors = _vectors(texts, body["requests"][0]["outputDimensionality"], fault)
                state.texts.update(texts)
                return {"embeddings": [{"values": vector} for vector in vectors]}
            texts = body["input"]
            vectors = _vectors(texts, body.get("dimensions", 8), fault)
            state.texts.update(texts)
            data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
            return {"data": data[::-1] if fault == "shuffled" else data}

        def _refuse(self, status: int) -> None:
            self.send_response(status)
            if state.retry_after is not None:
                self.send_header("Retry-After", state.retry_after)
            self.end_headers()
            self.wfile.write(state.refusal.encode())

        def _answer(self, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
