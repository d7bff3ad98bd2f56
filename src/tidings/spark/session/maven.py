"""Fetches jars from Maven Central, once, into the user's cache.

These are connectors of Spark, which PyPI does not have. The program mvn fetches them if it is
installed.

Invariant: a folder of jars is either complete or absent. It is filled under another name and then
renamed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from xml.sax.saxutils import escape

from tidings.files import user_cache_folder
from tidings.model import EnvironmentProblem
from tidings.spark.session.java import java_home

CENTRAL = "https://repo.maven.apache.org/maven2"

_TIMEOUT = 600  # seconds for all jars, which are tens of megabytes
_ASKING = 20  # seconds for one HTTP request

# Spark's POM files name a mirror that not everyone can reach. A repository declared under the same
# id takes precedence over it.
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
    "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version></dependency>"
)


def cache_folder() -> Path:
    """The folder of cached jars."""
    return user_cache_folder("jars")


def has_maven() -> bool:
    """Whether the program mvn is installed."""
    return shutil.which("mvn") is not None


def fetch_jars(coordinates: list[str], folder: Path) -> list[Path]:
    """Fill `folder` with the jars of `group:artifact:version` and their dependencies.

    Nothing is fetched if the folder exists.
    """
    if not folder.is_dir():
        _fill_folder(coordinates, folder)
    return sorted(folder.glob("*.jar"))


def list_versions(group: str, artifact: str) -> list[str]:
    """The released versions of an artifact, oldest first.

    Raises EnvironmentProblem if Maven Central can't be reached.
    """
    address = f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/maven-metadata.xml"
    try:
        with urllib.request.urlopen(address, timeout=_ASKING) as answer:
            text = answer.read().decode()
    except (OSError, ValueError) as error:
        raise EnvironmentProblem(
            f"Maven Central cannot be reached: {getattr(error, 'reason', error)}."
        ) from error
    found = re.findall(r"<version>([\d.]+)</version>", text)
    return sorted(found, key=lambda version: [int(part) for part in version.split(".")])


def _fill_folder(coordinates: list[str], folder: Path) -> None:
    if not has_maven():
        raise EnvironmentProblem(
            "The program mvn was not found; install Maven, which fetches the jars."
        )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as scratch:
            jars = _run_maven(coordinates, Path(scratch))
            try:
                jars.rename(folder)
            except OSError:
                if not folder.is_dir():  # otherwise another process was first, with the same jars
                    raise
    except OSError as error:
        raise EnvironmentProblem(f"The jars cannot be stored in {folder}: {error}.") from error


def _run_maven(coordinates: list[str], scratch: Path) -> Path:
    pom, jars = scratch / "pom.xml", scratch / "jars"
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
            f"Maven did not fetch {', '.join(coordinates)} within {_TIMEOUT} seconds."
        ) from error
    if answer.returncode != 0 or not jars.is_dir():
        raise EnvironmentProblem(
            f"Maven could not fetch {', '.join(coordinates)}: {_reason(answer.stdout)}."
        )
    return jars


def _reason(output: str) -> str:
    """The first error that Maven printed, without the help text appended to it."""
    errors = re.findall(r"\[ERROR\] (.+)", output)
    reason = errors[0].split(" -> [Help")[0] if errors else "it printed no error"
    return reason.rsplit(": ", 1)[-1].rstrip(".")
