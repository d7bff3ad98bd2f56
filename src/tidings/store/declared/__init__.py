"""What a channel declares: its attributes with their types, what happens to other fields, and its
kind of interest. A declaration is an entry of the channel's log, with a version.

    attributes ──declaration──> text ──declaration_request──> owner ──> log of the channel
                                 `──> without an owner, change_log ──────^    │
    filters of the log ──fitness──> refused, if a type would change           │
    the last declaration, and its version <──declaration_reader── new groups ─┘

    declaration.py           the text of a declaration; how two declarations differ
    declaration_reader.py    follows the log, and reads nothing but the declarations
    declaration_request.py   hands a declaration to the owner of the folder
    fitness.py               which filters use an attribute whose type would change

A channel has one declaration. Pipelines, commands and the file of a rendezvous point may make the
first declaration, or repeat the current one.

Used by change_log.py, channel, broker, spark and cli. Start at declaration.py.
"""

from tidings.store.declared.declaration import (
    DeclarationError,
    StoredDeclaration,
    find_difference,
    join_attributes,
    may_store,
)
from tidings.store.declared.declaration_reader import DeclarationReader, LastDeclaration
from tidings.store.declared.declaration_request import hand_over_declaration
from tidings.store.declared.fitness import StoredFilter, need_fit

__all__ = [
    "DeclarationError",
    "DeclarationReader",
    "LastDeclaration",
    "StoredDeclaration",
    "StoredFilter",
    "find_difference",
    "hand_over_declaration",
    "join_attributes",
    "may_store",
    "need_fit",
]
