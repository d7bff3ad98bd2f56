"""Local paths, and addresses such as s3://bucket/folder.

    file:///data/x, file:/data/x, /data/x, x     a local path
    s3://, s3a://, gs://, hdfs://, abfs://       an address, opened by pyarrow.fs

Hadoop and Arrow name the same stores differently: Spark's `s3a` and `s3n` are Arrow's `s3`. Arrow
takes credentials and endpoints from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL), not from
Spark's settings.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from tidings.model import TidingsError

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
# addresses that `Path` has shortened: for example, `Path("s3a://b/x")` is s3a:/b/x
_BY_PATH = re.compile(r"(s3[an]?|gs|gcs|hdfs|viewfs|abfss?|wasbs?|https?|file):/+")
_OF_ARROW = {"s3a": "s3", "s3n": "s3", "gcs": "gs"}


def scheme_of(path: str | Path) -> str:
    """The scheme of an address, in lower case; "" for a local path."""
    found = _ADDRESS.match(str(path)) or _BY_PATH.match(str(path))
    scheme = found[1].lower() if found else ""
    return "" if scheme == "file" else scheme


def local_path(path: str | Path, what: str) -> Path:
    """The path of a folder, which must be local; `what` names it in the error: "a change log"."""
    scheme = scheme_of(path)
    if scheme:
        raise TidingsError(
            f"found '{address_of(path)}' for {what}, expected a local path: {what} "
            f"needs locks and renames, which {scheme}:// does not support"
        )
    text = str(path)
    if not re.match(r"file:/", text, re.IGNORECASE):
        return Path(path)
    found = urlsplit(text)
    if found.netloc not in ("", "localhost"):
        raise TidingsError(f"found '{text}' for {what}, expected file:///PATH, with three slashes")
    # Hadoop does not escape the paths that it prints, so only full URLs are unescaped.
    return Path(unquote(found.path) if "://" in text else text.partition(":")[2])


def address_of(path: str | Path) -> str:
    """Return an address with both slashes after its scheme; a Path drops one of the slashes."""
    scheme, _, rest = str(path).partition(":")
    return f"{scheme}://{rest.lstrip('/')}" if scheme_of(path) else str(path)


def open_place(address: str | Path) -> tuple[Any, str]:
    """The pyarrow.fs.FileSystem of an address, and the path inside it."""
    from pyarrow import ArrowException, fs

    text, scheme = address_of(address), scheme_of(address)
    known = _OF_ARROW.get(scheme, scheme)
    try:
        found: tuple[Any, str] = fs.FileSystem.from_uri(known + text[len(scheme) :])
    except (ArrowException, OSError, ValueError) as problem:
        first = str(problem).partition("\n")[0]
        raise TidingsError(f"'{text}' can't be opened: {first}") from problem
    return found[0], found[1].rstrip("/")


def copy_here(address: str | Path, folder: Path, names: list[str]) -> None:
    """Copy files from a folder at an address to a local folder. A missing file raises
    FileNotFoundError."""
    import shutil

    from tidings.files.private import private_file

    system, root = open_place(address)
    for name in names:
        target = folder / name
        target.parent.mkdir(0o700, parents=True, exist_ok=True)
        with (
            system.open_input_stream(f"{root}/{name}") as source,
            private_file(target, "wb") as sink,
        ):
            shutil.copyfileobj(source, sink, 1 << 20)
