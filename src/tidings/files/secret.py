"""Files that contain tokens. Anyone who can read such a file can act under the names that its
tokens are bound to.

If we own a file and others can read it, the file is refused, with the command that fixes its mode.
If the file is not ours, or is mounted read-only, as secrets in containers are, somebody else must
fix its mode, so there is only a warning.
"""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from tidings.model import TidingsError

_LONGEST = 1 << 12  # the most characters of a token that fit in a greeting


class SecretError(TidingsError):
    """A file with a secret can't be used; the message says what to do."""


def check_secret(path: str | Path) -> str:
    """Raise SecretError if others can read a file that we own and can change. Return a warning if
    others can read a file that we can't change, otherwise an empty string."""
    path = Path(path)
    try:
        found = path.stat()
        is_fixed = bool(os.statvfs(path).f_flag & os.ST_RDONLY)
    except OSError as problem:
        raise SecretError(f"{path} can't be read: {problem.strerror}") from None
    mode = stat.S_IMODE(found.st_mode)
    if not stat.S_ISREG(found.st_mode):  # a pipe from a shell, which nobody else can read
        return ""
    if found.st_uid == os.geteuid() and not is_fixed:
        if mode & 0o077:
            raise SecretError(
                f"{path} contains tokens, but users other than its owner may read or write it "
                f"(its mode is {mode:04o}); expected 0600: chmod 600 {shlex.quote(str(path))}"
            )
    elif mode & 0o007:
        return (
            f"{path} contains tokens, but anybody on this machine may read it "
            f"(its mode is {mode:04o}); ask its owner to change that"
        )
    return ""


def read_secret(path: str | Path) -> tuple[str, str]:
    """The token in a file, without surrounding whitespace, and a warning; the warning may be
    empty."""
    path = Path(path)
    warning = check_secret(path)
    try:
        with path.open(encoding="utf-8") as file:
            found = file.read(_LONGEST + 1).strip()
    except OSError as problem:
        raise SecretError(f"{path} can't be read: {problem.strerror}") from None
    except ValueError:
        raise SecretError(f"{path} is not text, expected a token") from None
    if not found or len(found) > _LONGEST or len(found.split()) > 1:
        raise SecretError(f"{path}: expected one token, a word of at most {_LONGEST:,} characters")
    return found, warning
