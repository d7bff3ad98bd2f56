"""Folders of peers that are made up for tests."""

from __future__ import annotations

import json
from pathlib import Path

PEERS = Path(__file__).resolve().parents[2] / "benchmarks" / "peers"
LOOP = PEERS / "python-loop" / "driver.py"

# Answers as the protocol says, with matches that nobody has.
LIAR = """
import json, sys
for _ in sys.stdin:
    print(json.dumps({"system": "liar", "version": "1", "filters": 1, "events": 3,
        "matches": 10**6, "build_seconds": 0.1, "seconds": 0.1, "us_per_event": 1.0}), flush=True)
"""


def shared_code() -> dict[str, str]:
    return {"PYTHONPATH": str(PEERS / "shared")}


def add_peer(folder: Path, name: str, **fields: object) -> None:
    home = folder / name
    home.mkdir(parents=True)
    script = fields.pop("script", None)
    if script is not None:
        (home / "driver.py").write_text(str(script))
        fields["run"] = ["{python}", "{folder}/driver.py"]
    known = {"about": name, "operators": ["=", "between", "prefix", "suffix", "like"], **fields}
    (home / "peer.toml").write_bytes(_toml(known))


def _toml(fields: dict[str, object]) -> bytes:
    """Enough TOML for these tests: JSON's texts and lists are TOML's as well."""
    plain = {key: value for key, value in fields.items() if not isinstance(value, dict)}
    lines = [f"{key} = {json.dumps(value)}" for key, value in plain.items()]
    for key, value in fields.items():
        if isinstance(value, dict):
            lines.append(f"[{key}]")
            lines += [f"{json.dumps(name)} = {json.dumps(what)}" for name, what in value.items()]
    return "\n".join(lines).encode()


def add_loop(folder: Path, name: str) -> None:
    """A peer that is right: the plain loop over compiled expressions."""
    add_peer(folder, name, run=["{python}", str(LOOP)], environment=shared_code())
