"""Which environment variables point Lance and obstore at an object store."""

import lance
import obstore
import pyarrow as pa
import pytest
from obstore.exceptions import GenericError
from obstore.store import S3Store, from_url

from tests.support.s3 import S3Server

NOWHERE = "http://127.0.0.1:9"
ENDPOINTS = ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"]


def write_with_lance(bucket: str) -> None:
    lance.write_dataset(pa.table({"key": ["a"]}), f"s3://{bucket}/table")


def write_with_obstore(bucket: str) -> None:
    obstore.put(from_url(f"s3://{bucket}/"), "key", b"a")


BOTH = pytest.mark.parametrize("write", [write_with_lance, write_with_obstore])


@BOTH
def test_the_environment_is_enough(s3_bucket, write):
    write(s3_bucket)


@BOTH
@pytest.mark.parametrize("name", ENDPOINTS)
def test_the_endpoint_has_three_names(s3_server: S3Server, s3_bucket, monkeypatch, write, name):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv(name, s3_server.endpoint)

    write(s3_bucket)


@BOTH
@pytest.mark.parametrize("name", ["AWS_REGION", "AWS_DEFAULT_REGION", "ABSENT"])
def test_the_region_has_two_names_and_may_be_absent(s3_bucket, monkeypatch, write, name):
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv(name, "us-east-1")

    write(s3_bucket)


@BOTH
@pytest.mark.parametrize("yes", ["true", "1"])
def test_plain_http_must_be_allowed_by_name(s3_bucket, monkeypatch, write, yes):
    monkeypatch.setenv("AWS_ALLOW_HTTP", yes)

    write(s3_bucket)


def test_lance_refuses_plain_http_that_was_not_allowed(s3_bucket, monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP")

    with pytest.raises(ValueError, match="HTTP error: builder error"):
        lance.dataset(f"s3://{s3_bucket}/table", version=1)


def test_obstore_refuses_plain_http_that_was_not_allowed(s3_bucket, monkeypatch):
    monkeypatch.delenv("AWS_ALLOW_HTTP")

    with pytest.raises(GenericError, match="HTTP error: builder error"):
        write_with_obstore(s3_bucket)


def test_of_two_endpoints_lance_takes_the_one_set_first(
    s3_server: S3Server, s3_bucket, monkeypatch
):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_ENDPOINT", s3_server.endpoint)
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)

    write_with_lance(s3_bucket)


def test_of_two_endpoints_obstore_takes_the_one_set_last(
    s3_server: S3Server, s3_bucket, monkeypatch
):
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setenv("AWS_ENDPOINT", NOWHERE)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_server.endpoint)

    write_with_obstore(s3_bucket)


def test_explicit_options_win_over_the_environment_in_lance(
    s3_server: S3Server, s3_bucket, monkeypatch
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)

    lance.write_dataset(
        pa.table({"key": ["a"]}),
        f"s3://{s3_bucket}/table",
        storage_options={"aws_endpoint": s3_server.endpoint},
    )


def test_explicit_options_win_over_the_environment_in_obstore(
    s3_server: S3Server, s3_bucket, monkeypatch
):
    monkeypatch.setenv("AWS_ENDPOINT_URL", NOWHERE)

    obstore.put(S3Store(s3_bucket, endpoint=s3_server.endpoint), "key", b"a")
