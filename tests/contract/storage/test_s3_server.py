"""The S3 look-alike decides a conditional put in one step, as S3 does."""

import threading
from collections.abc import Iterable

from omnigraph.storage.store import Store
from tests.support.concurrency import at_once
from tests.support.s3 import one_at_a_time


def test_no_two_requests_are_answered_at_once():
    met: list[bool] = []
    both = threading.Barrier(2)

    def application(environ: object, start_response: object) -> Iterable[bytes]:  # noqa: ARG001
        try:
            both.wait(0.1)
        except threading.BrokenBarrierError:
            return []
        met.append(True)
        return []

    answer = one_at_a_time(application)
    at_once([lambda: answer({}, lambda *_: lambda _: None)] * 2)

    assert not met


def test_the_body_of_a_request_is_passed_on_whole(s3_bucket):
    objects = Store.open(f"s3://{s3_bucket}/graph").objects
    data = bytes(range(256)) * 4096
    objects.put("a", data)
    found = objects.read("a")

    assert found is not None
    assert found.data == data
