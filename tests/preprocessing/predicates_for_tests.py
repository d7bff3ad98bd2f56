"""Predicates, good and bad ones, installed as entry points in a folder of their own."""

from __future__ import annotations

from pathlib import Path

CODE = '''
import os
import signal
import time


def urgent(text, least):
    print("this goes to the log")
    return text.count("!") >= least


def odd(n):
    return n % 2 == 1


def fails(n):
    if n == 3:
        raise RuntimeError("a bug")
    return None if n == 4 else n > 4


def counts(n):
    return n  # not a Boolean


def hangs(text):
    if "hang" in text:
        open(__file__ + ".hangs", "w").close()  # for those who wait until it does
        time.sleep(600)
    return len(text) > 3


def dies(text):
    if "die" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    return True


def dies_once(text):
    """The first call ends the process."""
    path = os.environ["TIDINGS_DIES_ONCE"]
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(7)
    return True
'''
NAMES = ["urgent", "odd", "fails", "counts", "hangs", "dies", "dies_once", "absent"]


def install(folder: Path, version: str = "1.0") -> Path:
    """Put this folder on the path of Python, and the predicates are installed."""
    package = folder / "predicates_for_tests-1.0.dist-info"
    package.mkdir(parents=True, exist_ok=True)
    (folder / "installed_predicates.py").write_text(CODE)
    (package / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: predicates-for-tests\nVersion: {version}\n"
    )
    lines = [f"{name} = installed_predicates:{name}\n" for name in [*NAMES, "lower"]]
    (package / "entry_points.txt").write_text("[tidings.predicates]\n" + "".join(lines))
    return folder


def functions() -> dict[str, object]:
    """The same predicates, as functions of this process."""
    found: dict[str, object] = {}
    exec(CODE, found)
    return {name: found[name] for name in NAMES if name in found}
