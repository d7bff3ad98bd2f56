"""Durable state: the change log of subscriptions, the journal of a root, ontologies in files.

    change_log.py   ChangeLog: put, drop, changes since a version
        |── writer.py, state.py        number changes and nodes, append them as one group
        |── reader.py                  reads the changes up to the acknowledged end of the log
        |── records.py                 changes as records
        |── checkpoint.py, compaction.py    keep the state at one version, drop older segments
        |── settling.py, migration.py, repair.py    logs of dead writers, old logs, damaged logs
        `── locks.py                   who may write
    groups/         the log of groups, on which both logs are based: checksums, a chain, an end mark
    journal/        the journal of a rendezvous point
    ontologies.py   ontologies in files

Everything that was acknowledged is on the disk. If such data is lost later, readers get an error
instead of wrong data. Users get `load_ontology` from `tidings`; the rest is for broker, spark and
cli. Start at change_log.py, or at groups/log.py for the byte format.
"""

from tidings.store.change_log import Change, ChangeLog, KeyedChange, State
from tidings.store.locks import LOCK
from tidings.store.ontologies import load_ontology
from tidings.store.records import SQL, LogError
from tidings.store.repair import Repair

__all__ = [
    "LOCK",
    "SQL",
    "Change",
    "ChangeLog",
    "KeyedChange",
    "LogError",
    "Repair",
    "State",
    "load_ontology",
]
