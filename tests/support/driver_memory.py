"""Measures how much memory a driver takes for work on Spark, in its own process."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_DRIVER = """
import json, sys
from pathlib import Path
import omnigraph
from omnigraph.engine.spark.session import open_session
from omnigraph.engine.spark.settings import SessionSettings, Workload

def peak():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) << 10 for each in lines if each.startswith("VmHWM:"))

settings = SessionSettings(master="local[2]", driver_memory="1g", work=Workload.SHORT)
open_session(settings).range(10).count()
graph = omnigraph.open(sys.argv[1])
idle = peak()
{work}
print(json.dumps([peak() - idle, told]))
"""


def measure_above_idle(graph: str | Path, work: str, *given: str) -> tuple[int, Any]:
    """The peak of bytes above idle that a driver takes for some work, and the work's result.

    Args:
        work: Python that has `graph` and `sys.argv[2:]`, and assigns `told`.
    """
    command = [sys.executable, "-c", _DRIVER.format(work=work), str(graph), *given]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    bytes_taken, result = json.loads(done.stdout.splitlines()[-1])
    return bytes_taken, result
