"""The event patterns of the public AWS documentation, each with events that match and that do not.

In cases/eventbridge_aws.json, `page` is the page of the EventBridge User Guide, or the guide of a
service. `$base` in an event names an example event of these pages; the rest is put over it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec


class AwsExample(msgspec.Struct):
    page: str
    pattern: dict[str, Any]
    matches: list[dict[str, Any]]
    others: list[dict[str, Any]]

    @property
    def events(self) -> list[tuple[dict[str, Any], bool]]:
        return [(one, True) for one in self.matches] + [(one, False) for one in self.others]


def _over(base: Any, other: Any) -> Any:
    if not isinstance(base, dict) or not isinstance(other, dict):
        return other
    return {**base, **{name: _over(base.get(name), one) for name, one in other.items()}}


def read_examples() -> list[AwsExample]:
    found = json.loads((Path(__file__).parent / "cases" / "eventbridge_aws.json").read_text())

    def whole(event: dict[str, Any]) -> dict[str, Any]:
        rest = {name: one for name, one in event.items() if name != "$base"}
        out: dict[str, Any] = _over(found["events"].get(event.get("$base"), {}), rest)
        return out

    return [
        AwsExample(
            one["page"], one["pattern"], [*map(whole, one["matches"])], [*map(whole, one["others"])]
        )
        for one in found["cases"]
    ]
