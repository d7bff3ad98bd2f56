"""Files with a signed grant, for `tidings subscribe --grant`.

{"filter": "region = 'EU'", "dialect": "sql", "grant": "..."}        the grant in base64
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tidings.cli.common.command_errors import BadInput, remark
from tidings.files import place_file
from tidings.model import EnvironmentProblem

if TYPE_CHECKING:
    from tidings.network import Agent, SignedGrant


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    filter: str
    dialect: str
    grant: bytes


async def find_grant(file: str, agent: Agent, interest: str, dialect: str) -> SignedGrant:
    """The grant in a file. If the file has no grant, or the grant has expired, a preprocessor is
    asked for a new grant, which is stored in the file."""
    from tidings.network import SignedGrant

    path = Path(file)
    kept = _read(path)
    if kept is not None and (kept.filter, kept.dialect) != (interest, dialect):
        raise BadInput(
            f"{path}: found a grant for {kept.filter} ({kept.dialect}), expected one for "
            f"{interest} ({dialect})"
        )
    if kept is not None:
        grant = SignedGrant(kept.grant, interest, dialect)
        if grant.expires > time.time():
            return grant
        remark(f"the grant in {path} has expired; asking for another")
    grant = await agent.grant(interest, dialect)
    try:
        place_file(path, msgspec.json.encode(_File(interest, dialect, grant.data)) + b"\n")
    except OSError as problem:
        raise EnvironmentProblem(f"{path} can't be written: {problem.strerror}") from None
    return grant


def _read(path: Path) -> _File | None:
    """The content of a file; None if the file does not exist."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=_File)
    except FileNotFoundError:
        return None
    except OSError as problem:
        raise EnvironmentProblem(f"{path} can't be read: {problem.strerror}") from None
    except msgspec.MsgspecError as problem:
        raise BadInput(f"{path}: expected a grant that this command stored: {problem}") from None
