"""The program of a helper process, which calls one predicate for batches of arguments.

    python -P helper_program.py GROUP NAME VERSION

    stdin:   batches, each a length of 4 bytes and a pickled list of argument tuples
    stdout:  one answer when the predicate is loaded, then one for each call, in order: a code of
             one byte, a length of 2 bytes, and that many bytes of text

Output that the predicate prints goes to stderr, and its stdin is empty. The process ends when its
parent ends. The program imports only the standard library, so that it starts fast.
"""

from __future__ import annotations

import contextlib
import ctypes
import enum
import os
import pickle
import signal
import struct
import sys
import threading
import time
from importlib.metadata import entry_points
from typing import Any, BinaryIO


class Code(enum.IntEnum):
    """The codes with which the helper program answers. `UNUSABLE`: the predicate can't be
    loaded."""

    NULL, FALSE, TRUE, RAISED, READY, UNUSABLE = range(6)


ANSWER = struct.Struct(">BH")
BATCH = struct.Struct(">I")
LONGEST = 300  # the most characters of a reason


def main(group: str, name: str, version: str) -> None:
    end_with_parent()
    with os.fdopen(os.dup(0), "rb") as batches, os.fdopen(os.dup(1), "wb") as out:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(2, 1)
        try:
            predicate = load(group, name, version)
        except BaseException as problem:
            answer(out, Code.UNUSABLE, describe(problem))
            return
        answer(out, Code.READY)
        while batch := read_batch(batches):
            for arguments in batch:
                answer(out, *call(predicate, arguments))


def load(group: str, name: str, version: str) -> Any:
    found = entry_points(group=group)[name]
    have = "" if found.dist is None else found.dist.version
    if have != version:
        raise RuntimeError(f"found version '{have}' here, expected version '{version}'")
    predicate = found.load()
    if not callable(predicate):
        raise TypeError(f"found {type(predicate).__name__}, expected a function")
    return predicate


def call(predicate: Any, arguments: tuple[Any, ...]) -> tuple[int, str]:
    try:
        result = predicate(*arguments)
    except Exception as problem:
        return Code.RAISED, f"raised {describe(problem)}"
    if result is None:
        return Code.NULL, ""
    if result is True or result is False:
        return (Code.TRUE if result else Code.FALSE), ""
    return Code.RAISED, f"returned {type(result).__name__}, expected True, False or None"


def describe(problem: BaseException) -> str:
    text = " ".join(str(problem).split())  # one line
    return f"{type(problem).__name__}: {text}"[:LONGEST]


def answer(out: BinaryIO, code: int, text: str = "") -> None:
    data = text.encode(errors="replace")
    out.write(ANSWER.pack(code, len(data)) + data)
    out.flush()


def read_batch(stream: BinaryIO) -> Any:
    """The next batch; None at the end of the input."""
    head = stream.read(BATCH.size)
    return pickle.loads(stream.read(*BATCH.unpack(head))) if len(head) == BATCH.size else None


def end_with_parent() -> None:
    """End when the parent ends, even if the predicate never returns."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    with contextlib.suppress(
        Exception
    ):  # on Linux, the kernel ends the process even if none of its threads can run
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    main(*sys.argv[1:])
