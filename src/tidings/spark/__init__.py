"""tidings on Spark: tables and streams are tagged; a Java runtime and a local session.

The modules are loaded when a name is first used: `import tidings.spark` stays cheap, and
`python -m tidings.spark.java` finds its own module unloaded.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidings.spark.java import java_home
    from tidings.spark.session import local_session
    from tidings.spark.tagging import tag

__all__ = ["java_home", "local_session", "tag"]

_HOMES = {
    "java_home": "tidings.spark.java",
    "local_session": "tidings.spark.session",
    "tag": "tidings.spark.tagging",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
