"""What is written first: a compiled expression per filter, and a loop over all of them."""

from __future__ import annotations

import json
import platform
import re
import sys
import time
from collections.abc import Callable
from typing import Any

from passes import Task, serve

Check = Callable[[dict[str, Any]], bool]


def main() -> None:
    task = Task(sys.argv[1:])
    start = time.perf_counter()
    checks = [_compiled(filter_["tests"]) for filter_ in task.filters]
    build_seconds = time.perf_counter() - start

    def match(line: bytes) -> int:
        event = json.loads(line)
        return len([number for number, check in enumerate(checks) if check(event)])

    serve("python-loop", platform.python_version(), task, build_seconds, match)


def _compiled(tests: list[dict[str, Any]]) -> Check:
    text = " and ".join(_expression(test) for test in tests)
    made: Check = eval(f"lambda e: {text}", {"nan": float("nan"), "fullmatch": re.fullmatch})
    return made


def _expression(test: dict[str, Any]) -> str:
    name, operator, value = test["attribute"], test["op"], test.get("value")
    if operator == "=":
        return f"e.get({name!r}) == {value!r}"
    if operator == "prefix":
        return f"e.get({name!r}, '').startswith({value!r})"
    if operator == "suffix":
        return f"e.get({name!r}, '').endswith({value!r})"
    if operator == "like":
        pattern = ".*".join(re.escape(part) for part in test["value"].split("%"))
        return f"fullmatch({pattern!r}, e.get({name!r}, ''))"
    parts = [repr(test["low"]), "<="] if "low" in test else []
    parts.append(f"e.get({name!r}, nan)")
    parts += ["<=", repr(test["high"])] if "high" in test else []
    return " ".join(parts)


if __name__ == "__main__":
    main()
