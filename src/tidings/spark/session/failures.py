"""Reduces an error of Spark to one sentence.

An exception in a Python worker reaches the driver as text: a Python traceback among Java stack
traces. Only the last line of the traceback is worth showing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tidings.model import TidingsError

MOST = 400  # characters
_OURS = re.compile(r"^\s*tidings\.[\w.]+: (.+)$", re.MULTILINE)
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(.*)", re.DOTALL)
_RAISED = re.compile(r"^((?:\w+\.)*\w*(?:Error|Exception|Exit|Interrupt)\w*): (.+)$", re.MULTILINE)
_CAUSE = re.compile(r"^Caused by: (?:[\w$]+\.)+[\w$]+: (.+)$", re.MULTILINE)
_QUERY = re.compile(r"terminated with exception: ")
_JAVA = re.compile(r"^: ((?:\w+\.)+\w+): (.+)$", re.MULTILINE)
_HEADER = re.compile(r"CSV header does not conform|Number of column in CSV header")
_FILE = re.compile(r"(?:CSV file: |reading file )(?:file:/*(?=/))?(\S+\.\w+)")
_SILENT = re.compile(r"org\.apache\.kafka\.common\.errors\.TimeoutException: (.+)")
_FORGOTTEN = re.compile(r"KafkaIllegalStateException: Some data may have been lost|KAFKA_DATA_LOSS")
_POSITION = re.compile(r"FetchPosition\{offset=(\d+).* is out of range for partition (\S+)")
_STATE = re.compile(r"\s*SQLSTATE: \w+")


@contextmanager
def wrap_spark_errors() -> Iterator[None]:
    """Turn any exception that Spark raises in the block into a TidingsError."""
    try:
        yield
    except (TidingsError, OSError):
        raise
    except Exception as problem:
        raise TidingsError(f"the pipeline failed: {sentence_of(problem)}") from problem


def sentence_of(problem: BaseException) -> str:
    """One sentence on what went wrong. The message of a TidingsError is kept, even if it was raised
    in a worker."""
    if isinstance(problem, TidingsError):
        return str(problem)
    text = f"{problem}\n{getattr(problem, '_stackTrace', None) or ''}".strip()
    ours = _OURS.findall(text)
    if ours:
        return _shorten(ours[-1])
    header = _HEADER.search(text)
    if header:
        named = _FILE.search(text)
        return _shorten(
            f"{named[1] if named else 'a CSV file'}: the header does not match the declared "
            "columns; expected only names of declared columns, each at most once"
        )
    kafka = _sentence_on_kafka(text)
    if kafka:
        return _shorten(kafka)
    traceback = _TRACEBACK.search(text)
    raised = _RAISED.findall(traceback[1]) if traceback else []
    if raised:
        kind, message = raised[0]
        return _shorten(f"{kind.rsplit('.', 1)[-1]}: {message}")
    causes = _CAUSE.findall(text)
    if causes:
        return _shorten(_pick_cause(causes))
    java = _JAVA.search(text)  # an error formatted by py4j
    if java:
        return _shorten(java[2])
    parts = _QUERY.split(text, maxsplit=1)
    if len(parts) == 2:
        return _shorten(parts[1])
    kind = type(problem).__name__
    return _shorten(text if text.startswith("[") else f"{kind}: {text}" if text else kind)


def _sentence_on_kafka(text: str) -> str | None:
    """A sentence that says what to do, because Kafka's own message does not."""
    if _FORGOTTEN.search(text):
        at = _POSITION.search(text)
        where = f" (partition {at[2]} from offset {at[1]} on)" if at else ""
        return (
            f"Kafka no longer has rows that were not read yet{where}; set the option "
            f'failOnDataLoss = "false" of the source to continue with the rows that are left'
        )
    silent = _SILENT.search(text)
    if silent:
        return f"Kafka does not answer: {silent[1].rstrip('.')}; check servers in the pipeline file"
    return None


def _pick_cause(causes: list[str]) -> str:
    """The first cause with an error class of Spark. If that class gives no hint, the last cause is
    appended."""
    for cause in causes:
        named = re.fullmatch(r"\[([\w.]+)\] (.+)", cause)
        if named:
            more = f" {causes[-1]}" if named[1].endswith("NO_HINT") else ""
            return _STATE.sub("", named[2]).strip() + more
    return causes[-1]


def _shorten(text: str) -> str:
    """The first line without its SQLSTATE, cut to MOST characters."""
    line = _STATE.sub("", text.strip().partition("\n")[0]).strip()
    return line if len(line) <= MOST else line[: MOST - 1] + "…"
