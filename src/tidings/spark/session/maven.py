"""Fetches jars from Maven Central, once, into the user's cache.

The jars are connectors for Spark, which are not on PyPI. If the program mvn is installed, it
fetches the jars, because it knows the user's mirrors and proxies; otherwise the jars are downloaded
directly.

Invariant: a folder of jars is either complete or absent, and every jar has the requested digest. A
folder is filled under another name, checked, and then renamed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import urllib.request
from collections.abc import Iterable, Mapping
from pathlib import Path
from xml.sax.saxutils import escape

from tidings.files import filling_folder, user_cache_folder
from tidings.model import EnvironmentProblem
from tidings.spark.session.java import java_home

CENTRAL = "https://repo.maven.apache.org/maven2"

_TIMEOUT = 600  # seconds for all jars together, which are ten megabytes
_WAITING = 60  # a download fails after this many seconds without a byte

# Only these jars are fetched, not their dependencies, which a mirror may lack. Spark's POM files
# name a mirror that not everyone can reach. A repository that is declared here takes precedence
# over a mirror with the same id in those files.
_POM = """\
<project>
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidings</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <repositories>
    <repository><id>gcs-maven-central-mirror</id><url>{central}</url></repository>
  </repositories>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = (
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>"
    "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"
    "</dependency>"
)


def jars_folder() -> Path:
    """The folder of cached jars."""
    return user_cache_folder("jars")


def fetch_jars(wanted: Mapping[str, str], folder: Path) -> list[Path]:
    """The jars with these coordinates (`group:artifact:version`), each with its SHA-256. The jars
    are fetched into `folder` if it does not exist; a folder that was copied from another machine is
    only checked."""
    if not folder.is_dir():
        _fill_folder(wanted, folder)
    jars = [folder / jar_name(coordinate) for coordinate in wanted]
    _check_jars(jars, wanted, f"remove {folder}, and the jars are fetched again")
    return jars


def jar_name(coordinate: str) -> str:
    """The name of a jar's file."""
    _, artifact, version = coordinate.split(":")
    return f"{artifact}-{version}.jar"


def _check_jars(jars: Iterable[Path], wanted: Mapping[str, str], advice: str) -> None:
    for jar, digest in zip(jars, wanted.values(), strict=True):
        try:
            found = hashlib.sha256(jar.read_bytes()).hexdigest()
        except OSError as error:
            raise EnvironmentProblem(f"{jar} can't be read: {error.strerror}; {advice}") from error
        if found != digest:
            raise EnvironmentProblem(
                f"{jar}: found SHA-256 {found[:16]}…, expected {digest[:16]}…; {advice}"
            )


def _fill_folder(wanted: Mapping[str, str], folder: Path) -> None:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with filling_folder(folder) as jars:
            if shutil.which("mvn") is not None:
                _run_maven(wanted, jars)
            else:
                _download(wanted, jars)
            files = [jars / jar_name(coordinate) for coordinate in wanted]
            _check_jars(files, wanted, "ask the operator of your mirror of Maven Central")
    except OSError as error:
        raise EnvironmentProblem(f"the jars can't be stored in {folder}: {error}") from error


def _download(wanted: Iterable[str], jars: Path) -> None:
    jars.mkdir()
    for coordinate in wanted:
        group, artifact, version = coordinate.split(":")
        name = jar_name(coordinate)
        address = f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{name}"
        try:
            with urllib.request.urlopen(address, timeout=_WAITING) as answer:
                content = answer.read()
        except (OSError, ValueError) as error:
            raise EnvironmentProblem(
                f"{address} can't be fetched: {getattr(error, 'reason', error)}; install Maven "
                f"(mvn) and name your mirror in its settings, or copy the jars from a machine that "
                f"has them (see docs/pipelines.md, Kafka)"
            ) from error
        (jars / name).write_bytes(content)


def _run_maven(wanted: Iterable[str], jars: Path) -> None:
    coordinates = list(wanted)
    pom = jars.parent / "pom.xml"
    dependencies = "".join(
        _DEPENDENCY.format(*map(escape, coordinate.split(":"))) for coordinate in coordinates
    )
    pom.write_text(_POM.format(central=CENTRAL, dependencies=dependencies))
    command = ["mvn", "-B", "-q", "-f", str(pom), "dependency:copy-dependencies"]
    command += [f"-DoutputDirectory={jars}", "-DincludeScope=runtime"]
    environment = os.environ | {"JAVA_HOME": str(java_home())}
    try:
        answer = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise EnvironmentProblem(
            f"Maven did not fetch {', '.join(coordinates)} within {_TIMEOUT} seconds"
        ) from error
    if answer.returncode != 0 or not jars.is_dir():
        raise EnvironmentProblem(
            f"Maven could not fetch {', '.join(coordinates)}: {_reason(answer.stdout)}"
        )


def _reason(output: str) -> str:
    """The first error that Maven printed, without the help text appended to it."""
    errors = re.findall(r"\[ERROR\] (.+)", output)
    reason = errors[0].split(" -> [Help")[0] if errors else "it printed no error"
    return reason.rsplit(": ", 1)[-1].rstrip(".")
