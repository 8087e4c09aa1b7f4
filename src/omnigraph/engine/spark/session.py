"""Spark sessions: their defaults, and a quick and quiet start of the JVM.

An existing session is used as it is and never stopped. The settings that plans rely on
(`PLAN_SETTINGS`) are then set on a second session of our own; the caller's keeps its settings.
"""

from __future__ import annotations

import os
import re
import shlex
import site
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, assert_never

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from omnigraph.caches import cache_directory as default_cache_directory
from omnigraph.engine.spark.archive import NoArchive, Record, Replay, Start, choose_start
from omnigraph.engine.spark.connect import SCHEME, is_connect, open_remote, use_archive
from omnigraph.engine.spark.failures import silence_loggers
from omnigraph.engine.spark.java import require_java, unavailable_error
from omnigraph.engine.spark.packing import FOLDER, PYTHON
from omnigraph.engine.spark.settings import (
    MASTER_VARIABLE,
    SessionSettings,
    Workload,
    default_settings,
    packed_environment,
)
from omnigraph.engine.spark.workers import check_workers, use_our_python
from omnigraph.errors import ErrorCode, InvalidInputError, InvalidParameterError
from omnigraph.limits import SPARK_SHUFFLE_PARTITIONS_PER_CORE

SPARK_DRIVER_BYTES_MIN: Final = 1 << 30
SPARK_DRIVER_BYTES_MAX: Final = 8 << 30
"""Memory of a local Spark: a quarter of the machine's, within these bounds."""


_own_gateways: Final[list[Any]] = []
"""The way to the JVM that this module has started; the first one stays in use."""

_OWN_PROPERTY: Final = "omnigraph.started"

_REMOTE_VARIABLE: Final = "SPARK_REMOTE"

PLAN_SETTINGS: Final[Mapping[str, str]] = {
    # A cast or a sum that does not fit is an error, never a null or a wrong number.
    "spark.sql.ansi.enabled": "true",
    # Instants are UTC everywhere; with another zone, casts to and from text and dates would differ.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    # Properties that differ only in case are two properties, as in the schema language.
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Otherwise failures of a worker are reported without their cause.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "true",
    # Spark reads '\n' in a quoted text as two characters or one; sqlglot writes it as one.
    "spark.sql.parser.escapedStringLiterals": "false",
}
"""What a session must set for plans to mean the same on it as on any other engine."""

_CLASSIC_ONLY: Final = frozenset(
    ["spark.sql.adaptive.enabled", "spark.sql.execution.arrow.pyspark.enabled"]
)
"""Those that make a classic session faster, and say nothing on one of Spark Connect."""

_REMOTE_SETTINGS: Final = {
    name: value for name, value in PLAN_SETTINGS.items() if name not in _CLASSIC_ONLY
}
_SAME_AS: Final = {"UTC": ("Etc/UTC", "Z", "+00:00", "GMT")}

_MASTER: Final = re.compile(
    r"local|local\[(\*|[1-9]\d*)(\s*,\s*\d+)?\]|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^\s,/]+:\d+(,[^\s,/]+:\d+)*|yarn|k8s://\S+"
)
"""The masters that Spark accepts."""

_LOCAL: Final = re.compile(r"local(\[(?P<cores>\*|\d+)(,\s*\d+)?\])?")
_LOOPBACK: Final = "127.0.0.1"
_NOISE: Final = (
    b"WARNING: Using incubator modules",
    b"WARNING: package sun.security.action not in",
)
"""What Java prints about options that Spark itself sets, and that cannot be changed."""

_JVM_LOGGING: Final = Path(__file__).parent / "log4j2.properties"
_OPEN_LOCK: Final = threading.Lock()


def open_session(settings: SessionSettings | None = None) -> SparkSession:
    """The session that is active, or else a new one that lasts as long as this process."""
    silence_loggers()
    with _OPEN_LOCK:
        if (session := _running_session()) is not None:
            return session
        settings = settings or default_settings()
        if (address := _remote_address(settings)) is not None:
            session = open_remote(*address)
            for name, value in _missing_settings(session).items():
                session.conf.set(name, value)
            if (archive := packed_environment()) is not None:
                use_archive(session, archive)
            return session
        if "PYSPARK_GATEWAY_PORT" in os.environ:
            # spark-submit started the JVM, with its own options.
            return SparkSession.builder.getOrCreate()
        require_master(settings)
        conf = SparkConf(loadDefaults=False).setAll(list(spark_options(settings).items()))
        with _environment(_worker_environment(settings)):
            # A JVM outlives its session; it cannot be started again with other options.
            if not _own_gateways:
                _start(conf, settings)
            try:
                context = SparkContext.getOrCreate(conf)
            except Py4JError as cause:
                raise _no_cluster_error(settings) from cause
            try:
                return SparkSession.builder.config(conf=conf).getOrCreate()
            except Py4JError as cause:
                # Spark stops the context of a cluster that it cannot reach.
                context.stop()
                raise _no_cluster_error(settings) from cause


def require_master(settings: SessionSettings) -> None:
    """Refuse a master that Spark does not know: its own error says only that Java exited."""
    master = settings.chosen_master
    if _MASTER.fullmatch(master) is None:
        message = f"{master[:200]!r} is not a valid Spark master"
        hint = f"{_MASTERS}; check {_place_of_master(settings)}"
        raise InvalidParameterError(message, hint=hint, name="master")


_MASTERS: Final = (
    "write local[4], local[*], spark://host:7077, yarn or k8s://https://host:port, "
    "or sc://host:15002 for Spark Connect"
)


def _remote_address(settings: SessionSettings) -> tuple[str, str] | None:
    """The server of Spark Connect that is asked for, if one is, and where it is written."""
    if settings.chosen_master.startswith(SCHEME):
        return settings.chosen_master, _place_of_master(settings)
    if settings.is_master_chosen or _REMOTE_VARIABLE not in os.environ:
        return None
    return os.environ[_REMOTE_VARIABLE], _REMOTE_VARIABLE


def _place_of_master(settings: SessionSettings) -> str:
    return MASTER_VARIABLE if settings.master is None else "--master, or master= in Python"


def _no_cluster_error(settings: SessionSettings) -> InvalidInputError:
    message = f"Spark did not start: its master {settings.chosen_master} does not answer"
    hint = f"check {_place_of_master(settings)}, and that the cluster runs; or use local[*]"
    return InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)


def plan_session(session: SparkSession) -> SparkSession:
    """A session for plans: the given one if it has their settings, else a second one of our own.

    Both share the context, and so executors and masters; the given one keeps its settings. Workers
    on this machine run the Python of this process from now on; others are checked. A session of
    Spark Connect is used itself, since only its own frames work together, and must have the
    settings.
    """
    silence_loggers()
    if is_connect(session):
        check_workers(session)
        _require_settings(session)
        return session
    context = session.sparkContext
    assert context.master is not None, "a context has one"
    if local_cores(context.master) is None:
        check_workers(session)
    else:
        use_our_python(context)
    settings = PLAN_SETTINGS.items()
    if all(session.conf.get(name, None) == value for name, value in settings):
        return session
    own = session.newSession()
    for name, value in settings:
        own.conf.set(name, value)
    return own


def _missing_settings(session: SparkSession) -> dict[str, str]:
    """What a session of Spark Connect has to be given for plans."""
    return {
        name: value
        for name, value in _REMOTE_SETTINGS.items()
        if session.conf.get(name) not in (value, *_SAME_AS.get(value, ()))
    }


def _require_settings(session: SparkSession) -> None:
    missing = _missing_settings(session)
    if not missing:
        return
    name = next(iter(missing))
    message = (
        f"this session of Spark Connect has {name}={session.conf.get(name)}, with which a "
        "plan would mean something else"
    )
    hint = "run " + "; ".join(f'spark.conf.set("{n}", "{v}")' for n, v in missing.items())
    raise InvalidInputError(message, hint=hint, code=ErrorCode.ENGINE_UNAVAILABLE)


def spark_options(settings: SessionSettings) -> dict[str, str]:
    """Every option that a session of ours is started with."""
    options = {
        "spark.master": settings.chosen_master,
        "spark.app.name": "omnigraph",
        "spark.ui.enabled": str(settings.show_ui).lower(),
        "spark.ui.showConsoleProgress": "false",
        # Without Hive, whose database would be created in the working directory, as the warehouse
        # would be; we keep no tables of Spark's own.
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(Path(tempfile.gettempdir(), "omnigraph-spark-warehouse")),
        **PLAN_SETTINGS,
    }
    if (cores := local_cores(settings.chosen_master)) is not None:
        options |= _local_options(cores)
    elif (archive := packed_environment()) is not None:
        options["spark.archives"] = f"{archive}#{FOLDER}"
    if settings.driver_memory is not None:
        options["spark.driver.memory"] = settings.driver_memory
    return options | dict(settings.options)


def local_cores(master: str) -> int | None:
    """How many cores a local master uses; None for a master on other machines.

    >>> local_cores("local"), local_cores("local[4]"), local_cores("spark://host:7077")
    (1, 4, None)
    """
    match = _LOCAL.fullmatch(master)
    if match is None:
        return None
    cores = match["cores"] or "1"
    return len(os.sched_getaffinity(0)) if cores == "*" else int(cores)


def _local_options(cores: int) -> dict[str, str]:
    options = {
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.memory": f"{_driver_bytes() >> 20}m",
        "spark.sql.shuffle.partitions": str(cores * SPARK_SHUFFLE_PARTITIONS_PER_CORE),
    }
    # Workers run this same interpreter, and so find what is installed for it, but not a source
    # tree that is only on the path of this process.
    package_root = str(Path(__file__).parents[3])
    if package_root not in site.getsitepackages():
        paths = [package_root, *filter(None, [os.environ.get("PYTHONPATH")])]
        options["spark.executorEnv.PYTHONPATH"] = os.pathsep.join(paths)
    return options


def _worker_environment(settings: SessionSettings) -> dict[str, str]:
    """The variables that choose the Python of workers; a context reads them when it is made."""
    if local_cores(settings.chosen_master) is None:
        return {} if packed_environment() is None else {"PYSPARK_PYTHON": PYTHON}
    return {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}


def _driver_bytes() -> int:
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(SPARK_DRIVER_BYTES_MIN, min(SPARK_DRIVER_BYTES_MAX, total // 4))


def _running_session() -> SparkSession | None:
    try:
        session = SparkSession.active()
    except PySparkRuntimeError:
        return None
    if is_connect(session):
        return session
    try:
        _ = session.sparkContext.startTime
    except AttributeError:
        # A context that was stopped directly leaves its session behind.
        return None
    return session


def _start(conf: SparkConf, settings: SessionSettings) -> None:
    java = require_java()
    start = choose_start(settings.cache_directory or default_cache_directory(), java)
    try:
        try:
            _launch(conf, settings, java, start)
        except _DID_NOT_START:
            if not isinstance(start, Replay):
                raise
            start.path.unlink(missing_ok=True)
            _launch(conf, settings, java, NoArchive())
    except _DID_NOT_START as cause:
        if local_cores(settings.chosen_master) is None and isinstance(cause, Py4JError):
            raise _no_cluster_error(settings) from cause
        message = f"Spark did not start with {java}: {str(cause).partition(chr(10))[0]}"
        raise unavailable_error(message) from cause


_DID_NOT_START: Final = (PySparkRuntimeError, Py4JError, OSError)


def _launch(conf: SparkConf, settings: SessionSettings, java: Path, start: Start) -> None:
    """Start a JVM and its context; both last as long as this process.

    All output of the JVM is relayed to standard error: standard output is for data.
    """
    reads, writes = os.pipe()
    inherited = _inherited_files(start)
    process: dict[str, Any] = {"stdout": writes, "stderr": writes, "pass_fds": inherited}
    try:
        with _environment(_jvm_environment(settings, java, start)), warnings.catch_warnings():
            # The fork that Lance warns of is followed by exec, and never runs Lance.
            warnings.filterwarnings("ignore", message="lance is not fork-safe")
            gateway = _launch_gateway(conf, process)
    finally:
        for descriptor in (writes, *inherited):
            os.close(descriptor)
        threading.Thread(target=_relay, args=(reads,), daemon=True, name="spark-stderr").start()
    _own_gateways.append(gateway)
    SparkContext(conf=conf, gateway=gateway)
    SparkContext.setSystemProperty(_OWN_PROPERTY, "true")
    if gateway.jvm.java.lang.System.getProperty(_OWN_PROPERTY) is None:
        # The caller had started a JVM before, and stopped its session: Spark goes on in that one.
        gateway.shutdown()
        gateway.proc.kill()
        gateway.proc.wait()


def _launch_gateway(conf: SparkConf, process: dict[str, Any]) -> Any:
    """A running JVM. An interrupt kills it."""
    # In another thread: an interrupt of pyspark here would leave a Java process that has no owner
    # and does not exit.
    with ThreadPoolExecutor(max_workers=1) as pool:
        gateway = pool.submit(launch_gateway, conf, popen_kwargs=process)
        try:
            return gateway.result()
        except KeyboardInterrupt:
            if gateway.exception() is None:
                gateway.result().proc.kill()
            raise


def _inherited_files(start: Start) -> tuple[int, ...]:
    match start:
        case Record():
            return (start.lock,)
        case Replay() | NoArchive():
            return ()
        case _:
            assert_never(start)


def _jvm_environment(settings: SessionSettings, java: Path, start: Start) -> dict[str, str]:
    options = [
        f"-Dlog4j2.configurationFile={_JVM_LOGGING}",
        # The JVM's own log, most of it about archives, would be on standard output; newer ones log
        # an unused archive as an error. Fatal errors are still printed.
        "-Xlog:disable",
        *start.options,
    ]
    if settings.work is Workload.SHORT:
        options += ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    user_options = os.environ.get("SPARK_SUBMIT_OPTS", "")
    environment = {
        "JAVA_HOME": str(java.parent.parent),
        # The user's options are last, and override ours.
        "SPARK_SUBMIT_OPTS": f"{shlex.join(options)} {user_options}".strip(),
    }
    if local_cores(settings.chosen_master) is not None:
        environment["SPARK_LOCAL_IP"] = os.environ.get("SPARK_LOCAL_IP", _LOOPBACK)
    return environment


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set variables for a child process that is started in the block; pyspark passes on all."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _relay(reads: int) -> None:
    """Copy the output of the JVM to standard error, without `_NOISE`."""
    with os.fdopen(reads, "rb") as lines:
        for line in lines:
            if not line.startswith(_NOISE):
                os.write(2, line)
