"""Predicates that are installed as entry points."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path

from tidings.filters import parse
from tidings.filters.language import Call
from tidings.model import EnvironmentProblem, FilterError
from tidings.preprocessing.predicates.decisions import Decisions

PREDICATES = "tidings.predicates"
HELPER = Path(__file__).with_name("helper_program.py")
"""The program of a helper process."""


def need_predicates(names: Iterable[str]) -> dict[str, str]:
    """The versions of installed predicates, by name; raises EnvironmentProblem if one can't be
    used. The version is that of the package to which the predicate belongs. No code is loaded."""
    known = entry_points(group=PREDICATES)
    found: dict[str, str] = {}
    for name in names:
        if name not in known.names:
            others = ", ".join(sorted(known.names)) or "no such predicate"
            raise EnvironmentProblem(
                f"the predicate '{name}' is not installed here; found {others} among the entry "
                f"points '{PREDICATES}'"
            )
        _need_name(name)
        package = known[name].dist
        found[name] = "" if package is None else package.version
    return found


def _need_name(name: str) -> None:
    """Raise EnvironmentProblem if filters can't call this name, or if it is the name of a built-in
    function."""
    try:
        node = parse(f"{name}(x)", functions=Decisions().functions([name])).expression
    except FilterError:
        node = None
    if not (isinstance(node, Call) and node.name == "apply"):
        raise EnvironmentProblem(
            f"found a predicate with the name '{name}', which filters can't call; expected "
            "letters, digits and _, and not the name of a function"
        )
