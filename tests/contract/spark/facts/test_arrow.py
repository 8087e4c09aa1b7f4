"""Arrow, where what Spark gives becomes what plans declare."""

import signal
import subprocess
import sys
from typing import Final

CAST_NULL_LISTS: Final = """
import pyarrow as pa
from pyarrow import ipc

table = pa.table({"x": pa.array([None], pa.list_(pa.float32()))})
sink = pa.BufferOutputStream()
with ipc.new_stream(sink, table.schema) as stream:
    stream.write_table(table)
received = ipc.open_stream(sink.getvalue()).read_all()
received["x"].cast(pa.list_(pa.float32(), 3))
"""


def test_making_vectors_of_received_lists_that_are_all_null_kills_python():
    ran = subprocess.run([sys.executable, "-c", CAST_NULL_LISTS], check=False)

    assert ran.returncode == -signal.SIGSEGV
