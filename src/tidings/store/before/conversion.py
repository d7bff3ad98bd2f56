"""Converts the folder of a channel from an older format, when it is first opened.

    converting/   an unfinished new log
    converted/    a finished one, whose files are moved up; any process can continue that
    aside/        the old files, in a folder named after the id of the new log

Versions, ids, texts and node numbers stay the same. Nodes without subscriptions stay too if their
filters are known: a filter that is added again gets its old number, until a rendezvous point
removes the node.

If a log was written before null and absent were distinguished, its identities are computed again
from the texts. If a journal has the current format, but no version in its end mark, the version is
added.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tidings.files import make_durable_folder, sync
from tidings.filters.dialects import rekeyed_calls
from tidings.routing.protocol import pack_interest
from tidings.store import folder as f
from tidings.store.before import old_log, text_log
from tidings.store.before.old_log import CHANGES, OldLog
from tidings.store.change_records import LogError, damage_error
from tidings.store.groups import GroupLog
from tidings.store.groups.end_mark import NAME as END
from tidings.store.journal import checkpoint, entries as t
from tidings.store.journal.losses import LossReplay, value_of
from tidings.store.journal.rows import SQL, encode_rows, entry_of
from tidings.store.journal.state import JournalState, StoredNode, StoredSubscription

MAKING, MADE, ASIDE = "converting", "converted", "aside"
MOST = 10_000  # a group has at most this many changes, and takes one sync
LOST = b"lost"  # the identities of lost nodes began with this

KeyOf = Callable[[str, str], bytes | None]
"""The identity of a text in a dialect, or None if the text is refused now."""


def is_before(folder: Path) -> bool:
    """Whether a folder must be converted."""
    if f.read_format(folder) is not None:
        return any((folder / name).exists() for name in (CHANGES, MADE))
    names = (CHANGES, MADE, END)
    return any((folder / name).exists() for name in names) or bool(text_log.files_of(folder))


def convert(folder: Path, key_of: KeyOf) -> None:
    """Convert a folder, or finish a conversion. The caller must hold the lock."""
    if not is_before(folder):
        return
    if not (folder / MADE).exists():
        old = _read(folder)
        if old is None:
            _add_versions(folder)
            f.note_format(folder)
            return
        shutil.rmtree(folder / MAKING, ignore_errors=True)
        make_durable_folder(folder / MAKING)
        _fill(folder / MAKING, old, key_of)
        (folder / MAKING).rename(folder / MADE)
        sync(folder)
    _install(folder)


def _read(folder: Path) -> OldLog | None:
    """The old log of subscriptions; None if there is only a journal."""
    if f.read_format(folder) is not None:
        raise LogError(
            f"found {folder / CHANGES}, which an older version of tidings wrote next to the log; "
            "move this folder elsewhere, then make the changes that it records again"
        )
    files = text_log.files_of(folder)
    if (folder / CHANGES).exists():
        if files:
            raise LogError(
                f"found {files[0]}, which an older version of tidings wrote next to the log; move "
                "this file elsewhere, then make the changes that it records again"
            )
        return old_log.read(folder)
    return text_log.read(folder) if files else None


def _install(folder: Path) -> None:
    made = folder / MADE
    mark = GroupLog(made).read_mark() or GroupLog(folder).read_mark()
    assert mark is not None, "the new log is complete"
    aside = folder / ASIDE / f"{mark.log:016x}"
    make_durable_folder(aside)
    for path in [*text_log.files_of(folder), folder / CHANGES]:
        if path.exists():
            path.rename(aside / path.name)
    sync(aside)
    for path in sorted(made.iterdir()):
        path.rename(folder / path.name)
    sync(folder)
    f.note_format(folder)
    made.rmdir()
    sync(folder)


def _fill(beside: Path, old: OldLog, key_of: KeyOf) -> None:
    """Write the content of an old log as a new one."""
    state, keys = _state(old), _identities(old, key_of)
    for number, node in state.nodes.items():
        node.key = keys.get(number, b"")
    log = GroupLog(beside)
    walk = log.walk()
    list(walk)
    log.take_end(walk)
    there, known = bool(old.base.version), {*state.nodes}
    version = old.first - 1
    for at in range(0, len(old.records) or 1, MOST):
        part = old.records[at : at + MOST]
        begun = [t.encode(t.At(version))] if log.begins_segment else []
        entries = []
        for one in part:
            is_new = one.filter is not None and (one.key is not None or one.node not in known)
            known.add(one.node)
            key = keys.get(one.node, b"") if is_new else None
            entries.append(entry_of(one.id, one.filter, one.node, key, one.dialect))
        version = part[-1].version if part else version
        value = value_of(max(version, old.base.version), has_checkpoint=there)
        log.append([*begun, *encode_rows(old.first + at, entries)], value)
    log.close()
    if there:
        state.log = log.id
        checkpoint.write(beside, state)


def _state(old: OldLog) -> JournalState:
    """The state in the old checkpoint; the new log begins with it."""
    base, state = old.base, JournalState()
    for id_, (text, node) in base.subscriptions.items():
        dialect = base.dialects.get(id_, SQL)
        state.subscriptions[id_] = StoredSubscription(text, node, base.version, dialect)
        if node not in state.nodes:
            state.nodes[node] = StoredNode(pack_interest(text.encode(), dialect), named=True)
        state.integer = type(id_) is int
    state.lost = list(base.lost)
    state.history.version = base.version
    state.last_node = max(base.version, len(base.keys))
    return state


def _identities(old: OldLog, key_of: KeyOf) -> dict[int, bytes]:
    """The identities of the nodes. If two nodes would get the same identity, the later node keeps
    its old identity."""
    known = {node: key for node, key in enumerate(old.base.keys, 1) if key[:4] != LOST}
    known |= {one.node: one.key for one in old.records if one.key}
    if old.has_identities:
        return known
    texts: dict[int, tuple[str, str]] = {}
    for id_, (text, node) in old.base.subscriptions.items():
        texts[node] = text, old.base.dialects.get(id_, SQL)
    texts |= {one.node: (one.filter, one.dialect) for one in old.records if one.filter is not None}
    used, out = set(known.values()), dict(known)
    for node, (text, dialect) in sorted(texts.items()):
        key = key_of(text, dialect) if _is_rekeyed(text) else None
        if key is not None and key not in used:
            out[node] = key
            used.add(key)
    return out


def _is_rekeyed(text: str) -> bool:
    return any(call in text.lower() for call in rekeyed_calls())


def _add_versions(folder: Path) -> None:
    """Give a journal of an older release an end mark with a version, by appending an entry that
    contains only the version."""
    log = GroupLog(folder)
    mark = log.read_mark()
    try:
        state = checkpoint.read(folder, mark)
    except checkpoint.Damaged as problem:
        raise damage_error(folder, str(problem), 0, 0) from None
    there = bool(state.at.number)
    walk, replay = log.walk(state.at), LossReplay(state)
    try:
        replay.apply(walk)
    except ValueError as problem:  # for example, it is the log of an outbox's commits
        raise LogError(f"{folder} has a log, but not that of a channel: {problem}") from None
    if losses := log.losses(walk):
        raise damage_error(folder, losses[0], 0, 0)
    value = value_of(state.version, has_checkpoint=there)
    log.take_end(walk, value)
    log.append([t.encode(t.At(state.version))], value)
    log.close()
