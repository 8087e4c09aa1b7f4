"""Fixtures that more than one suite uses."""

from __future__ import annotations

import gc
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import HealthCheck, Phase, settings
from xdist.scheduler import LoadFileScheduling

from omnigraph.engine.spark.settings import use_by_default
from tests.support import s3
from tests.support.spark import session_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer

    from tests.support.minio import MinioServer

# What the gate says of a change depends on the change alone: it draws the same examples every time,
# and tells a failure as it was found, since making it small can take longer than all other tests.
# `make soak` draws new examples, many more, and makes what fails small.
settings.register_profile(
    "gate",
    max_examples=40,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)
settings.register_profile("soak", max_examples=1000, deadline=None, print_blob=True)
settings.load_profile("gate")


class _SparkOnOneWorker(LoadFileScheduling):  # type: ignore[misc]  # xdist ships no types
    """A worker takes a whole file, and one takes all tests of Spark, by their names.

    Every other worker would start a Java of its own for those. All tests of style are one worker's,
    too. (`--dist loadgroup` is of no use: xdist 3.8 names groups in a way that pytest 9 does not
    see.)
    """

    def _split_scope(self, nodeid: str) -> str:
        if _says_spark(nodeid):
            return "spark"
        # The tests of style share the trees of all sources.
        return "tidy" if nodeid.startswith("tests/tidy/") else str(super()._split_scope(nodeid))


def _says_spark(nodeid: str) -> bool:
    return "spark" in nodeid or "frame" in nodeid


_MEMORY: Final = Path("/dev/shm")
_ROOM_BYTES_MIN: Final = 8 << 30
"""Several times what tests have at one time; their processes need some of it, too."""


def pytest_configure(config: pytest.Config) -> None:
    """Make a run the same wherever it starts.

    Graphs of tests are in memory where there is room: a disk takes more CPU, and is waited for.
    Those of tests that passed are deleted at once.
    """
    if config.option.basetemp is None and _has_room():
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(_MEMORY))
    # A job in the background of a shell ignores it, and so would the commands that tests interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        # `nohup make test`: processes that the tests start would inherit it.
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _has_room() -> bool:
    meminfo = Path("/proc/meminfo")
    if not (_MEMORY.is_dir() and meminfo.is_file()):
        return False
    lines = meminfo.read_text(encoding="ascii").splitlines()
    kibibytes = next((int(line.split()[1]) for line in lines if line.startswith("MemAvail")), 0)
    return min(kibibytes << 10, shutil.disk_usage(_MEMORY).free) > _ROOM_BYTES_MIN


def pytest_collection_finish() -> None:
    """Exclude what was collected from garbage collection, which takes a tenth of the run else."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Let libraries that count what is left at the end find nothing."""
    gc.unfreeze()


_LONG_FIRST: Final = ("property", "recovery", "cost", "e2e", "docs", "contract")
"""Suites by how long their files take, the longest first."""


def _rank(item: pytest.Item) -> int:
    if _says_spark(item.nodeid):
        return 0
    suite = item.nodeid.removeprefix("tests/").partition("/")[0]
    return 1 + (_LONG_FIRST.index(suite) if suite in _LONG_FIRST else len(_LONG_FIRST))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a test that needs Spark and does not say so: it would start a Java of its own.

    Workers take the files of long tests first, so that they all end at about the same time.
    """
    if hasattr(config, "workerinput"):
        items.sort(key=_rank)
    for each in items:
        if "spark" in getattr(each, "fixturenames", ()) and not _says_spark(each.nodeid):
            message = f"{each.nodeid} needs Spark: say so in its name"
            raise pytest.UsageError(message)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadFileScheduling | None:
    """What `--dist loadfile` means here."""
    if config.getvalue("dist") != "loadfile":
        return None
    # By their order, not by the number of their tests: the longest files have few.
    config.option.loadscopereorder = False
    return _SparkOnOneWorker(config, log)


@pytest.fixture(scope="session")
def s3_server() -> Iterator[s3.S3Server | MinioServer]:
    """One S3 look-alike, or MinIO, for the run (one per worker under xdist)."""
    program = os.environ.get(s3.MINIO_VARIABLE)
    if program is None:
        with s3.run_server() as server:
            yield server
        return
    # Imported here: it needs Spark's helpers.
    from tests.support.minio import run_minio

    with run_minio(Path(program)) as real:
        yield real


@pytest.fixture
def s3_bucket(s3_server: s3.S3Server | MinioServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a fresh bucket that Lance, obstore and child processes find by environment."""
    # A developer's own AWS_ENDPOINT or AWS_PROFILE must not win over ours.
    for name in [each for each in os.environ if each.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in s3_server.environment.items():
        monkeypatch.setenv(name, value)
    return s3_server.create_bucket()


@pytest.fixture
def denying_store(monkeypatch: pytest.MonkeyPatch, s3_bucket: str) -> Iterator[str]:
    """The endpoint of a store that knows no credentials of ours."""
    assert s3_bucket
    with s3.run_denying_store() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        yield endpoint


@pytest.fixture(scope="session", autouse=True)
def _small_spark(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whichever test is the first to need Spark, it starts the session that tests are to share.

    The one that users get compiles for long work, which takes most of the time of short tests.
    """
    cache = request.config.cache
    assert cache is not None
    # Kept between runs, so that all but the first start quickly.
    with use_by_default(session_settings(cache.mkdir("spark-start-up"))):
        yield


@pytest.fixture(scope="session")
def spark() -> SparkSession:
    """One Spark session for the run (one per worker under xdist)."""
    # Imported here: most test runs never need it.
    from omnigraph.engine.spark.session import open_session

    return open_session()
