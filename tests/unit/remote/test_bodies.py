"""Large bodies: received whole however they arrive, and never taken for whole when they are not."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread

import httpx
import pytest

from omnigraph.remote.bodies import read_body

SIZE = 3 << 20
BODY = bytes(number % 251 for number in range(1 << 10)) * (SIZE >> 10)


@contextmanager
def answering(pieces: Sequence[bytes], *, stays_open: bool = False) -> Iterator[str]:
    """A server of one connection, which answers any request by these pieces, as they are."""
    done = Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(1 << 16)
                for piece in pieces:
                    connection.sendall(piece)
                if stays_open:
                    done.wait(30)

        thread = Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/"
        done.set()
        thread.join()


def fetch(url: str, seconds_max: float = 20.0) -> bytes:
    with httpx.Client(trust_env=False, timeout=seconds_max) as client:
        response = client.send(client.build_request("GET", url), stream=True)
        return bytes(read_body(response, seconds_max=seconds_max))


HEADERS = f"HTTP/1.1 200 OK\r\nContent-Length: {SIZE}\r\n\r\n".encode()
ARRIVALS = {
    "all at once": [HEADERS + BODY],
    "headers before": [HEADERS, BODY],
    "a byte with the headers": [HEADERS + BODY[:1], BODY[1:]],
    "headers in two": [HEADERS[:20], HEADERS[20:] + BODY[:100_000], BODY[100_000:]],
}


@pytest.mark.parametrize("pieces", ARRIVALS.values(), ids=ARRIVALS.keys())
def test_a_large_body_is_received_whole(pieces: list[bytes]) -> None:
    with answering(pieces, stays_open=True) as url:
        assert fetch(url) == BODY


@pytest.mark.parametrize("received", [0, 1, 70_000, SIZE - 1])
def test_a_body_that_ends_too_early_is_an_error(received: int) -> None:
    with answering([HEADERS + BODY[:received]]) as url, pytest.raises(httpx.TransportError):
        fetch(url)


def test_a_body_that_does_not_go_on_is_late() -> None:
    with (
        answering([HEADERS + BODY[:70_000]], stays_open=True) as url,
        pytest.raises(httpx.ReadTimeout),
    ):
        fetch(url, 0.2)


def test_what_has_no_size_or_is_compressed_is_left_to_httpx() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    with answering([chunked]) as url:
        assert fetch(url) == b"abc"
