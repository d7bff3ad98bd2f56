"""Durable state: the folder of a channel, with its log; ontologies in files.

    folder.py       the folder of a channel: its files, its format, who may write
    journal/        the entries of the log, the state that results from them, and its checkpoints;
                    the log as a rendezvous point writes it
    change_log.py   ChangeLog, for pipelines and commands: put, drop, changes since a version
        |── writer.py, known_log.py, live_ids.py    number changes and nodes, append them
        |── reader.py                 reads the changes up to the acknowledged end of the log
        |── change_records.py         changes, as readers get them
        |── log_contents.py           changes and states, as users get them
        |── compaction.py             drops segments whose state a checkpoint contains
        `── log_opening.py, before/   logs of dead writers, and of older releases
    declared/       the attributes that the channel declares, by version
    bulks/          subscriptions that were adopted as a whole, in mapped files
    adoptions/      how a rendezvous point adopts such subscriptions while it runs
    layered.py      mappings that consist of bulks and of what changed since
    numbers/        numbers the notifications of pipelines, where there is no rendezvous point
    owner/          how commands hand changes to the process that owns the folder
    groups/         the log of groups below all of this: checksums, a chain, an end mark
    ontologies.py   ontologies in files

Everything that was acknowledged is on the disk. If such data is lost later, readers get an error
instead of wrong data. Users get `load_ontology` from `tidings`; the rest is for broker, spark and
cli. Start at folder.py, or at groups/log.py for the byte format.
"""

from tidings.store.before import find_format, list_copies
from tidings.store.change_log import ChangeLog, need_owner
from tidings.store.change_records import LogError
from tidings.store.folder import LOCK, owner_of
from tidings.store.journal import FileJournal
from tidings.store.journal.rows import SQL
from tidings.store.live_ids import LiveIds, ProjectedIds
from tidings.store.log_contents import (
    Adoption,
    Change,
    Declared,
    KeyedChange,
    Repair,
    State,
    Summary,
    stored_filters,
)
from tidings.store.numbers import Accepting
from tidings.store.ontologies import load_ontology
from tidings.store.owner import Adopt, Asked, Declare

__all__ = [
    "LOCK",
    "SQL",
    "Accepting",
    "Adopt",
    "Adoption",
    "Asked",
    "Change",
    "ChangeLog",
    "Declare",
    "Declared",
    "FileJournal",
    "KeyedChange",
    "LiveIds",
    "LogError",
    "ProjectedIds",
    "Repair",
    "State",
    "Summary",
    "find_format",
    "list_copies",
    "load_ontology",
    "need_owner",
    "owner_of",
    "stored_filters",
]
