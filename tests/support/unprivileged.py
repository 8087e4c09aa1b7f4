"""Runs the command as an unprivileged user, because permissions do not restrict root."""

import os
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.support.commands import Answer, omnigraph
from tests.support.concurrency import in_processes
from tests.support.processes import UNPRIVILEGED

ADD: Final = "query add($name: String) { insert Note { name: $name } }"


def run_unprivileged(*arguments: str) -> Answer:
    """Run the command in its own process, as a user who owns no files."""
    [answer] = in_processes(_run, [arguments])
    assert "Traceback" not in answer.err, answer.err
    return answer


def _run(_: Any, *arguments: str) -> Answer:
    # Once with all rights, to import every module: that user may not be able to read our Python.
    with tempfile.TemporaryDirectory() as place:
        store, schema = f"{place}/graph.omni", Path(place, "schema.pg")
        schema.write_text("node Note { name: String @key }")
        assert omnigraph("init", store, "--schema", str(schema)).code == 0
        assert omnigraph("snapshot", "--store", store).code == 0
        assert omnigraph("mutate", "--store", store, "-e", ADD, "-p", "name=x").code == 0
        assert omnigraph("mutate", "--store", store, "-e", ADD, "-p", "nme=x").code != 0
    if os.geteuid() == 0:
        os.setegid(UNPRIVILEGED)
        os.seteuid(UNPRIVILEGED)
    return omnigraph(*arguments)
