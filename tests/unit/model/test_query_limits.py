"""Limits of queries: what is accepted, what it means, and how it is refused."""

from datetime import timedelta

import pytest

from omnigraph.errors import InvalidParameterError
from omnigraph.model.durations import format_duration
from omnigraph.model.query_limits import require_max_rows, require_memory, require_timeout
from omnigraph.model.sizes import format_size, require_size


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("30s", 30),
        ("2m", 120),
        ("500ms", 0.5),
        (" 1h ", 3600),
        (1.5, 1.5),
        (7, 7),
        (timedelta(minutes=1), 60),
        ("none", None),
    ],
)
def test_a_timeout(given: object, seconds: float | None) -> None:
    timeout = require_timeout(given, "timeout")
    assert (None if timeout is None else timeout.total_seconds()) == seconds


@pytest.mark.parametrize(
    "given",
    ["30", "", "s", "-1s", "1.5s", "30S", "1w", 0, "0s", -1, float("nan"), 1e300, True, b"3s"],
)
def test_what_is_no_timeout_is_refused_by_name(given: object) -> None:
    with pytest.raises(InvalidParameterError, match="timeout") as refused:
        require_timeout(given, "timeout")
    assert refused.value.hint


@pytest.mark.parametrize(
    ("given", "byte_count"),
    [
        ("512MB", 512_000_000),
        ("512 mb", 512_000_000),
        ("64MiB", 64 << 20),
        ("2GiB", 2 << 30),
        ("1tb", 10**12),
        ("20000kb", 20_000_000),
        ("16000000B", 16_000_000),
        (1 << 30, 1 << 30),
        ("none", None),
    ],
)
def test_a_memory(given: object, byte_count: int | None) -> None:
    assert require_memory(given, "memory") == byte_count


@pytest.mark.parametrize("given", ["512", "MB", "-5MB", "1.5GB", "5PB", "15MB", 0, -1, 1e9, True])
def test_what_is_no_memory_is_refused_by_name(given: object) -> None:
    with pytest.raises(InvalidParameterError, match="memory") as refused:
        require_memory(given, "memory")
    assert refused.value.hint


@pytest.mark.parametrize("given", [0, -1, "10", "", 1.0, True])
def test_what_is_no_number_of_rows_is_refused_by_name(given: object) -> None:
    with pytest.raises(InvalidParameterError, match="max_rows"):
        require_max_rows(given, "max_rows")
    assert require_max_rows(1, "max_rows") == 1
    assert require_max_rows("none", "max_rows") is None


def test_what_is_printed_reads_as_it_was_written() -> None:
    for text in ("512MB", "2GiB", "1TB", "17B", "1KiB"):
        assert format_size(require_size(text, "size")) == text
    for text in ("30s", "2m", "500ms", "3h", "4d", "90s"):
        timeout = require_timeout(text, "timeout")
        assert timeout is not None
        assert format_duration(timeout) == text
    assert format_duration(timedelta(microseconds=1500)) == "0.0015s"
