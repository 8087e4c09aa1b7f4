"""The loop of the starter: one thread that accepts clients, forks, and ends when it is idle."""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from omnigraph.limits import WARM_CLIENTS_MAX, WARM_LOOK_SECONDS
from omnigraph.warm import freshness, place
from omnigraph.warm.attendant import Service, Starter, attend
from omnigraph.warm.callers import start_variables

_BACKLOG: Final = 128


class AlreadyServedError(Exception):
    """Another starter of this installation runs."""


class ThreadsError(Exception):
    """The process has more than one thread, so its copies would lack some."""


@dataclass(frozen=True, slots=True)
class Post:
    """Where a starter listens; no other process does while it lives.

    Attributes:
        path: The socket, whose removal ends the starter.
        lock: A descriptor of the lock that it has while it lives.
    """

    listener: socket.socket
    path: Path
    lock: int


@contextmanager
def listen() -> Iterator[Post]:
    """The socket of this installation, until the block ends.

    Raises:
        AlreadyServedError: another starter has it.
        OSError: it cannot be made.
    """
    home, name = Path(place.directory()), place.socket_name()
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = place.open_directory(str(home))
    lock = os.open(f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600, dir_fd=folder)
    with socket.socket(socket.AF_UNIX) as listener:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as cause:
            raise AlreadyServedError from cause
        # Whoever left it is dead: a starter has the lock while it lives.
        path = home / name
        path.unlink(missing_ok=True)
        listener.bind(place.address(folder, name))
        os.close(folder)
        listener.listen(_BACKLOG)
        try:
            yield Post(listener, path, lock)
        finally:
            path.unlink(missing_ok=True)


@dataclass(slots=True)
class Server:
    """The loop, and what it knows of its attendants.

    Attributes:
        attendants: The processes that serve clients.
    """

    post: Post
    starter: Starter
    attendants: set[int] = field(default_factory=set)
    last_use: float = field(default_factory=time.monotonic)
    is_stopped: bool = False

    def run(self) -> None:
        """Serve clients until the idle limit, a change of the installation or a signal."""
        own, listener = _inode(self.post.path), self.post.listener
        listener.settimeout(0)
        with _signals() as woken:
            while not self.is_stopped:
                pause = min(WARM_LOOK_SECONDS, self.starter.idle_seconds)
                ready, _, _ = select.select([listener.fileno(), woken], [], [], pause)
                if woken in ready:
                    self._take_signals(woken)
                if listener.fileno() in ready and not self.is_stopped:
                    self._accept()
                if not ready and (self._is_idle() or self._is_abandoned(own)):
                    return

    def _take_signals(self, woken: int) -> None:
        if signal.SIGTERM in os.read(woken, 1024):
            self.is_stopped = True
        for pid in list(self.attendants):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                self._count(os.waitstatus_to_exitcode(status))
                self.attendants.discard(pid)
                self.last_use = time.monotonic()

    def _count(self, code: int) -> None:
        if code == Service.RAN:
            self.starter.commands += 1
        elif code != Service.ANSWERED:
            self.starter.refused += 1

    def _accept(self) -> None:
        with suppress(BlockingIOError):
            connection, _ = self.post.listener.accept()
            # A client that gets no answer runs its command itself.
            with closing(connection):
                if len(self.attendants) >= WARM_CLIENTS_MAX:
                    self.starter.refused += 1
                    return
                require_one_thread()
                pid = os.fork()
                if pid == 0:
                    self._attend(connection)
                self.attendants.add(pid)

    def _attend(self, connection: socket.socket) -> NoReturn:
        """In a copy of the starter: serve one client, and end."""
        code = int(Service.REFUSED)
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGCHLD):
                signal.signal(number, signal.SIG_DFL)
            # A lock is held for as long as any process has it open.
            self.post.listener.close()
            os.close(self.post.lock)
            code = int(attend(connection, self.starter, len(self.attendants)))
        except BaseException:
            traceback.print_exc()
            raise
        finally:
            os._exit(code)

    def _is_idle(self) -> bool:
        unused = time.monotonic() - self.last_use
        return not self.attendants and unused >= self.starter.idle_seconds

    def _is_abandoned(self, own: int | None) -> bool:
        """Whether no client can find it any more, or none would be served."""
        return _inode(self.post.path) != own or not freshness.is_fresh(self.starter.files)


def make_starter(run_command: Callable[[], NoReturn], *, idle_seconds: float) -> Starter:
    """This process, which has imported what commands need, as a starter.

    Raises:
        ThreadsError: it has more than one thread.
    """
    require_one_thread()
    return Starter(
        process=os.pidfd_open(os.getpid()),
        pid=os.getpid(),
        identity=place.identity(),
        variables=start_variables(dict(os.environb)),
        files=freshness.imported_files(),
        run_command=run_command,
        idle_seconds=idle_seconds,
        started=time.monotonic(),
    )


def require_one_thread() -> None:
    """Check that nothing that was imported has started a thread, which a copy would not have.

    Raises:
        ThreadsError: something has.
    """
    threads = list(Path("/proc/self/task").iterdir())
    if len(threads) > 1:
        names = sorted((thread / "comm").read_text().strip() for thread in threads)
        message = f"it has {len(threads)} threads: {', '.join(names)}"
        raise ThreadsError(message)


@contextmanager
def _signals() -> Iterator[int]:
    """A descriptor from which the numbers of SIGTERM and SIGCHLD are read as they arrive."""
    reader, writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, lambda *_: None)
    signal.set_wakeup_fd(writer)
    try:
        yield reader
    finally:
        signal.set_wakeup_fd(-1)
        os.close(reader)
        os.close(writer)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def detach() -> None:
    """Release the streams and the directory of the process that started this one."""
    sys.stdout.flush()
    sys.stderr.flush()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(nowhere, descriptor, inheritable=True)
    os.close(nowhere)
    os.chdir("/")
