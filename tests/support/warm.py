"""The `omnigraph` command, forked from a process that has already imported its libraries.

Nearly all the time of a short command is spent importing them. `warm_server` does it once.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Final

# It imports almost nothing, to start fast. Some variables take effect only while Python starts, so
# they need a real start.
_CALLER: Final = """\
#!{python} -IS
import json, os, socket, sys

if {{"PYTHONIOENCODING", "PYTHONUTF8"}} & set(os.environ):
    os.execv({python!r}, [{python!r}, "-m", "omnigraph", *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as server:
    server.connect({address!r})
    socket.send_fds(server, [b"-"], [0, 1, 2])
    server.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
    server.shutdown(socket.SHUT_WR)
    code = int(server.recv(16))
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@cache
def omnigraph_program() -> Path:
    """A program that works like `omnigraph`, alone in its folder, until this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-warm-"))
    address = str(folder / "socket")
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.support.warm_server", address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    atexit.register(_end, server)
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    program = folder / "omnigraph"
    program.write_text(_CALLER.format(python=sys.executable, address=address), encoding="utf-8")
    program.chmod(0o755)
    return program


def _end(server: subprocess.Popen[bytes]) -> None:
    server.communicate()
