"""Durable state: the log of the changes to a channel's subscriptions."""

from tidings.store.change_log import Change, ChangeLog, KeyedChange, State
from tidings.store.locks import LOCK
from tidings.store.ontologies import load_ontology
from tidings.store.records import LogError
from tidings.store.repair import Repair

__all__ = [
    "LOCK",
    "Change",
    "ChangeLog",
    "KeyedChange",
    "LogError",
    "Repair",
    "State",
    "load_ontology",
]
