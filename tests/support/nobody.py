"""The command run by a user whom permissions bind: root may do anything."""

import os
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any, Final

from omnigraph.cli.main import main
from tests.support.commands import Answer
from tests.support.concurrency import in_processes
from tests.support.processes import UNPRIVILEGED

ADD: Final = "query add($name: String) { insert Note { name: $name } }"


def as_nobody(*arguments: str) -> Answer:
    """Run the command in a process of its own, as a user who owns nothing."""
    [answer] = in_processes(_run, [arguments])
    assert "Traceback" not in answer.err, answer.err
    return answer


def _run(_: Any, *arguments: str) -> Answer:
    # Once with all rights, so that every module is loaded: nobody may not even read our Python.
    with tempfile.TemporaryDirectory() as place:
        store, schema = f"{place}/graph.omni", Path(place, "schema.pg")
        schema.write_text("node Note { name: String @key }")
        assert _told("init", store, "--schema", str(schema)).code == 0
        assert _told("snapshot", "--store", store).code == 0
        assert _told("mutate", "--store", store, "-e", ADD, "-p", "name=x").code == 0
        assert _told("mutate", "--store", store, "-e", ADD, "-p", "nme=x").code != 0
    if os.geteuid() == 0:
        os.setegid(UNPRIVILEGED)
        os.seteuid(UNPRIVILEGED)
    return _told(*arguments)


def _told(*arguments: str) -> Answer:
    out, err = BytesIO(), BytesIO()
    with redirect_stdout(TextIOWrapper(out)) as said, redirect_stderr(TextIOWrapper(err)) as cried:
        code = main(arguments)
        said.flush()
        cried.flush()
        return Answer(code, out.getvalue().decode(), err.getvalue().decode())
