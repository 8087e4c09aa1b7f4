"""Memory of loads, merges and other jobs, each in a process of its own, by system and JVM.

python -m benchmarks.memory load GRAPH SOURCE MODE
python -m benchmarks.memory merge GRAPH BRANCH
python -m benchmarks.memory change GRAPH SCHEMA
python -m benchmarks.memory optimize GRAPH
"""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from omnigraph import graph
from omnigraph.engine.spark.session import open_session


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the three kinds of process that a load on this machine has.

    Attributes:
        driver: The most that the process had which called `load`.
        heap: What the JVM still held after it, without garbage.
        worker: The most that one of the Python workers had.
    """

    driver: int
    heap: int
    worker: int


def measure(made: Path, source: Path, *, mode: str = "append") -> Memory:
    """The memory of one load into a graph that exists, by a new process.

    Raises:
        CalledProcessError: it did not load.
    """
    return Memory(**_asked("load", str(made), str(source), mode))


def measure_merge(made: Path, branch: str) -> int:
    """The most bytes that a merge takes above what its process has with the graph open.

    Raises:
        CalledProcessError: it did not merge.
    """
    return int(_asked("merge", str(made), branch)["above_idle"])


def measure_change(made: Path, schema: str) -> int:
    """The most bytes that the driver of a schema change on Spark takes above an idle one.

    Raises:
        CalledProcessError: the schema did not change.
    """
    return int(_asked("change", str(made), schema)["above_idle"])


def measure_optimize(made: Path) -> int:
    """The most bytes that the driver of an optimize on Spark takes above an idle one.

    Raises:
        CalledProcessError: it did not optimize.
    """
    return int(_asked("optimize", str(made))["above_idle"])


def _asked(*command: str) -> dict[str, int]:
    """What a new process prints at last."""
    asked = [sys.executable, "-m", "benchmarks.memory", *command]
    root = Path(__file__).parents[1]
    done = subprocess.run(asked, cwd=root, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, int] = json.loads(done.stdout.splitlines()[-1])
    return found


def merge(made: str, branch: str) -> None:
    """Merge on the local engine, and print what it took."""
    opened = graph.open(made)
    idle = _status("self", "VmRSS")
    opened.merge(branch, engine="local")
    print(json.dumps({"above_idle": _peak("self") - idle}))


def change(made: str, schema: str) -> None:
    """Change the schema on Spark, and print what the driver took."""
    _run_on_spark(made, lambda opened: opened.schema.apply(schema, engine="spark"))


def optimize(made: str) -> None:
    """Optimize on Spark, and print what the driver took."""
    _run_on_spark(made, lambda opened: opened.optimize(engine="spark"))


def _run_on_spark(made: str, job: Callable[[graph.Graph], object]) -> None:
    opened = graph.open(made)
    open_session().range(10).count()
    opened.snapshot()
    idle = _peak("self")
    job(opened)
    print(json.dumps({"above_idle": _peak("self") - idle}))


def load(made: str, source: str, mode: str) -> None:
    """Load without indexes, and print what it took."""
    graph.open(made).load(source, mode=mode, engine="spark", index=False)
    print(json.dumps(asdict(used_by_spark())))


def used_by_spark() -> Memory:
    """What this process, its JVM and its workers have used."""
    machine = open_session().sparkContext._jvm  # noqa: SLF001
    assert machine is not None, "it has just loaded"
    java = machine.java.lang
    java.System.gc()
    runtime = java.Runtime.getRuntime()
    heap = runtime.totalMemory() - runtime.freeMemory()
    # Workers stay for a while after their last task.
    workers = [_peak(each) for each in _below(_parents(), "self") if _is_python(each)]
    return Memory(_peak("self"), heap, max(workers, default=0))


def _peak(process: str) -> int:
    """The most memory that a process ever had: not that of the one it was forked from."""
    return _status(process, "VmHWM")


def _status(process: str, name: str) -> int:
    for line in Path("/proc", process, "status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    return 0


def _parents() -> dict[str, str]:
    """Every process of this machine, and whose child it is."""
    found = {}
    for each in Path("/proc").iterdir():
        if each.name.isdecimal():
            try:
                found[each.name] = (each / "stat").read_text().rpartition(")")[2].split()[1]
            except OSError:
                continue
    return found


def _below(parents: dict[str, str], process: str) -> list[str]:
    """The children of a process, theirs, and so on."""
    own = Path("/proc", process).resolve().name
    children = [each for each, parent in parents.items() if parent == own]
    return [*children, *(each for child in children for each in _below(parents, child))]


def _is_python(process: str) -> bool:
    try:
        return "python" in Path("/proc", process, "exe").resolve().name
    except OSError:
        return False


if __name__ == "__main__":
    jobs = {"load": load, "merge": merge, "change": change, "optimize": optimize}
    jobs[sys.argv[1]](*sys.argv[2:])
