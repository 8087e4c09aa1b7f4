"""Failpoints: the named places where a test may make the process fail; free when unarmed."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn

from omnigraph.errors import InvalidInputError

ENVIRONMENT_VARIABLE: Final = "OMNIGRAPH_FAILPOINTS"
"""`point=raise`, `point=kill`, `point=kill@3` (the third hit), several joined by commas."""


class Failpoint(StrEnum):
    """Every place that can be made to fail, in the order the code reaches them."""

    INIT_AFTER_CLAIM = "init.after_claim"
    INIT_AFTER_EACH_TABLE = "init.after_each_table"
    INIT_AFTER_STAGE = "init.after_stage"
    INIT_AFTER_MANIFEST = "init.after_manifest"
    INIT_AFTER_SCHEMA_TEXT = "init.after_schema_text"
    IMPORT_AFTER_RECORD = "import.after_record"
    IMPORT_AFTER_EACH_TABLE = "import.after_each_table"
    IMPORT_AFTER_EACH_COMMIT = "import.after_each_commit"
    IMPORT_AFTER_EACH_BRANCH = "import.after_each_branch"
    IMPORT_AFTER_NAMES = "import.after_names"
    IMPORT_AFTER_END = "import.after_end"
    BRANCH_AFTER_REF = "branch.after_ref"
    BRANCH_AFTER_NAME = "branch.after_name"
    BRANCH_AFTER_MARK = "branch.after_mark"
    BRANCH_AFTER_END = "branch.after_end"
    BRANCH_AFTER_RETIRE = "branch.after_retire"
    BRANCH_AFTER_UNREGISTER = "branch.after_unregister"
    TAG_AFTER_PUT = "tag.after_put"
    WRITE_AFTER_HEAL = "write.after_heal"
    WRITE_AFTER_PLAN = "write.after_plan"
    WRITE_AFTER_STAGE = "write.after_stage"
    WRITE_AFTER_EACH_FORK = "write.after_each_fork"
    WRITE_AFTER_EACH_TABLE = "write.after_each_table"
    CLAIM_AFTER_PUT = "claim.after_put"
    CLAIM_AFTER_LIST = "claim.after_list"
    WRITE_AFTER_CHECK = "write.after_check"
    WRITE_AFTER_EACH_APPLY = "write.after_each_apply"
    WRITE_AFTER_CONFIRM = "write.after_confirm"
    WRITE_AFTER_PUBLISH = "write.after_publish"
    WRITE_AFTER_SETTLE = "write.after_settle"
    STREAM_AFTER_LOOKUP = "stream.after_lookup"
    STREAM_AFTER_BATCH = "stream.after_batch"
    RECOVERY_AFTER_CLAIM = "recovery.after_claim"
    RECOVERY_AFTER_CLASSIFY = "recovery.after_classify"
    RECOVERY_AFTER_EACH_RESTORE = "recovery.after_each_restore"
    RECOVERY_AFTER_ROLL_FORWARD = "recovery.after_roll_forward"
    RECOVERY_AFTER_ROLL_BACK = "recovery.after_roll_back"
    RECOVERY_AFTER_AUDIT = "recovery.after_audit"
    RECOVERY_AFTER_SETTLE = "recovery.after_settle"
    RECOVERY_AFTER_END = "recovery.after_end"
    PUBLISH_AFTER_READ = "publish.after_read"
    PUBLISH_AFTER_STAGE = "publish.after_stage"
    PUBLISH_AFTER_COMMIT = "publish.after_commit"
    APPLY_AFTER_COMMIT = "apply.after_commit"
    COPY_AFTER_CUT = "copy.after_cut"
    COPY_AFTER_CLAIM = "copy.after_claim"
    COPY_AFTER_SHUT = "copy.after_shut"
    COPY_AFTER_EACH_FILE = "copy.after_each_file"
    COPY_AFTER_TABLES = "copy.after_tables"
    COPY_AFTER_EACH_VERSION = "copy.after_each_version"
    COPY_AFTER_EACH_RECORD = "copy.after_each_record"
    COPY_AFTER_OPEN = "copy.after_open"
    COPY_AFTER_COMPLETE = "copy.after_complete"
    CLEANUP_AFTER_PLAN = "cleanup.after_plan"
    CLEANUP_AFTER_MARK = "cleanup.after_mark"
    CLEANUP_AFTER_LOOK = "cleanup.after_look"
    CLEANUP_AFTER_CONFIRM = "cleanup.after_confirm"
    CLEANUP_AFTER_VERSIONS = "cleanup.after_versions"
    CLEANUP_AFTER_EACH_REF = "cleanup.after_each_ref"
    CLEANUP_AFTER_FILES = "cleanup.after_files"
    CLEANUP_AFTER_EACH_TABLE = "cleanup.after_each_table"
    CLEANUP_AFTER_EACH_SCHEMA = "cleanup.after_each_schema"
    CLEANUP_AFTER_EACH_SCRATCH = "cleanup.after_each_scratch"


class SimulatedCrash(BaseException):
    """Not an Exception: nothing may catch it, as nothing catches a power cut."""


Action = Callable[[], None]


@dataclass(slots=True)
class _Trap:
    action: Action
    hits_before: int


_armed: dict[Failpoint, _Trap] = {}


def hit(point: Failpoint) -> None:
    """Run the action that a test armed `point` with, if any."""
    if _armed:
        _fire(point)


def _fire(point: Failpoint) -> None:
    trap = _armed.get(point)
    if trap is None:
        return
    if trap.hits_before > 0:
        trap.hits_before -= 1
        return
    trap.action()


def crash() -> NoReturn:
    """Raise an exception that nothing catches."""
    raise SimulatedCrash


def kill() -> None:
    """End this process at once, running no handler, as a power cut would."""
    os.kill(os.getpid(), signal.SIGKILL)


@contextmanager
def arm(point: Failpoint, action: Action = crash, *, after_hits: int = 0) -> Iterator[None]:
    """Run `action` at every hit of `point` during the block, except for the first `after_hits`."""
    previous = _armed.get(point)
    _armed[point] = _Trap(action, after_hits)
    try:
        yield
    finally:
        if previous is None:
            del _armed[point]
        else:
            _armed[point] = previous


_ACTIONS: Final[dict[str, Action]] = {"raise": crash, "kill": kill}
_NTH: Final = re.compile("[1-9][0-9]{0,8}")


def arm_from_environment(text: str) -> None:
    """Arm this process as `OMNIGRAPH_FAILPOINTS` says; unknown words are rejected."""
    traps = {}
    for entry in filter(None, (part.strip() for part in text.split(","))):
        name, _, rest = entry.partition("=")
        action, _, nth = rest.partition("@")
        if name not in set(Failpoint) or action not in _ACTIONS or not _NTH.fullmatch(nth or "1"):
            message = f"{ENVIRONMENT_VARIABLE} holds {entry!r}, which is not point=action[@nth]"
            known = f"points: {', '.join(Failpoint)}; actions: {', '.join(_ACTIONS)}"
            raise InvalidInputError(message, hint=known)
        traps[Failpoint(name)] = _Trap(_ACTIONS[action], int(nth or 1) - 1)
    _armed.update(traps)


def obey_environment() -> None:
    """Arm what the variable of this process names, if it has one."""
    if ENVIRONMENT_VARIABLE in os.environ:
        arm_from_environment(os.environ[ENVIRONMENT_VARIABLE])


obey_environment()
