"""Masters of Spark: which there are, and what is said of others and of those that are not there."""

import os
import subprocess
import sys
from textwrap import dedent

import pytest

from omnigraph.engine.spark.session import require_master
from omnigraph.engine.spark.settings import MASTER_VARIABLE, SessionSettings
from omnigraph.errors import InvalidParameterError

KNOWN = [
    *("local", "local[1]", "local[*]", "local[4,2]", "local[4, 2]", "local[*,3]"),
    *("local-cluster[2,1,1024]", "yarn", "k8s://https://host:6443", "k8s://host"),
    *("spark://host:7077", "spark://10.0.0.1:7077", "spark://a:7077,b:7077"),
]
UNKNOWN = [
    *("nonsense", "local[]", "local[x]", "local[0]", "local[4", "locals", " local"),
    *(
        "host:7077",
        "spark://",
        "spark://host",
        "spark://host:port",
        "http://host:7077",
        "mesos://h:1",
    ),
]


@pytest.mark.parametrize("master", KNOWN)
def test_what_spark_knows_is_taken(master: str) -> None:
    require_master(SessionSettings(master=master))


@pytest.mark.parametrize("master", UNKNOWN)
def test_what_spark_does_not_know_is_refused_before_it_starts(
    master: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidParameterError, match="is not a valid Spark master") as refusal:
        require_master(SessionSettings(master=master))
    assert "spark://host:7077" in refusal.value.hint
    assert "--master" in refusal.value.hint
    monkeypatch.setenv(MASTER_VARIABLE, master)
    with pytest.raises(InvalidParameterError) as refusal:
        require_master(SessionSettings())
    assert MASTER_VARIABLE in refusal.value.hint


# Spark asks three times, for twenty seconds each.
@pytest.mark.soak
def test_a_master_that_does_not_answer_is_named_in_a_sentence() -> None:
    program = """
        from omnigraph.engine.spark.session import open_session
        from omnigraph.engine.spark.settings import SessionSettings
        from omnigraph.errors import ErrorCode, InvalidInputError
        try:
            open_session(SessionSettings(master="spark://127.0.0.1:1"))
        except InvalidInputError as error:
            assert error.code is ErrorCode.ENGINE_UNAVAILABLE
            print(error)
        print(open_session(SessionSettings(master="local[1]")).range(3).count())
    """
    ran = subprocess.run(
        [sys.executable, "-c", dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
        timeout=200,
    )
    first, count = ran.stdout.splitlines()
    assert first.startswith("Spark did not start: its master spark://127.0.0.1:1 does not answer")
    assert "--master" in first
    assert count == "3"
    assert "Traceback" not in ran.stderr
