"""What we rely on where objects are read in ranges and written as streams."""

import os
from urllib.request import Request, urlopen

import obstore
import pytest
from obstore.exceptions import BaseError, PreconditionError

from tests.support.s3 import MINIO_VARIABLE


def test_a_range_of_the_version_that_was_found_is_read(conditional):
    obstore.put(conditional, "a", b"0123456789")
    tag = obstore.head(conditional, "a")["e_tag"]
    answer = obstore.get(conditional, "a", options={"range": (2, 5), "if_match": tag})
    assert bytes(answer.bytes()) == b"234"


def test_a_range_of_a_replaced_object_is_refused(conditional):
    obstore.put(conditional, "a", b"0123456789")
    tag = obstore.head(conditional, "a")["e_tag"]
    obstore.put(conditional, "a", b"abcdefghij")
    with pytest.raises(PreconditionError):
        obstore.get(conditional, "a", options={"range": (2, 5), "if_match": tag})


def test_a_stream_is_an_object_when_its_block_ends(s3):
    with obstore.open_writer(s3, "a", buffer_size=5 << 20) as writer:
        writer.write(b"x" * (12 << 20))
        assert obstore.list(s3).collect() == []
    assert obstore.head(s3, "a")["size"] == 12 << 20


@pytest.mark.parametrize("size", [10, 12 << 20], ids=["one part", "several parts"])
def test_a_stream_whose_block_fails_stores_nothing_and_replaces_nothing(s3, size):
    obstore.put(s3, "a", b"before")

    def fail() -> None:
        with obstore.open_writer(s3, "a", buffer_size=5 << 20) as writer:
            writer.write(b"x" * size)
            message = "planted"
            raise RuntimeError(message)

    with pytest.raises(RuntimeError, match="planted"):
        fail()
    assert bytes(obstore.get(s3, "a").bytes()) == b"before"


def test_signed_bytes_are_refused(s3):
    signed = memoryview(b"abc").cast("b")
    writer = obstore.open_writer(s3, "a")
    with pytest.raises(BufferError):
        writer.write(signed)
    writer.write(signed.cast("B"))
    writer.close()
    assert bytes(obstore.get(s3, "a").bytes()) == b"abc"


@pytest.mark.skipif(MINIO_VARIABLE in os.environ, reason="MinIO refuses such a key itself")
def test_a_key_with_an_empty_part_makes_a_listing_fail(s3_bucket, s3_server, s3):
    url = f"{s3_server.endpoint}/{s3_bucket}/objects/a//b"
    with urlopen(Request(url, data=b"", method="PUT"), timeout=30):
        pass
    with pytest.raises(BaseError, match="invalid path"):
        obstore.list(s3).collect()
