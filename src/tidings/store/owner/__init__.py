"""The owner of a channel's folder accepts changes from commands, over a Unix socket in the folder.

    command ──change──> socket in the folder ──> owner ──> log, synced ──version──> command
    pipeline ──join──> socket in the folder ──> rendezvous point, as one of its links

    owner_socket.py      the socket: its file, its messages
    serving.py           the owner's side: takes changes, and answers once they are on the disk
    change_requests.py   the side of commands: hands changes over, or says why it can't
    ownership.py         the driver of a pipeline as the owner; changes of an owner that died

One process owns a folder: a rendezvous point, or the driver of a pipeline. Without an owner,
commands write to the log themselves. change_log.py chooses between these two ways. If the owner
died before it answered, change_log.py finds out whether the changes were made.

Used inside store, by broker and by spark. Start at owner_socket.py.
"""

from tidings.store.owner.change_requests import (
    Died,
    Unowned,
    ask_for_folder,
    hand_adoption,
    hand_declaration,
    hand_over,
    join_owner,
)
from tidings.store.owner.owner_socket import (
    NAME as SOCKET,
    Adopt,
    Asked,
    Declare,
    close_listener,
    listen,
)
from tidings.store.owner.ownership import Ownership, find_versions
from tidings.store.owner.serving import CommandServer, Take, TakeDeclaration, TakeSnapshot, Welcome

__all__ = [
    "SOCKET",
    "Adopt",
    "Asked",
    "CommandServer",
    "Declare",
    "Died",
    "Ownership",
    "Take",
    "TakeDeclaration",
    "TakeSnapshot",
    "Unowned",
    "Welcome",
    "ask_for_folder",
    "close_listener",
    "find_versions",
    "hand_adoption",
    "hand_declaration",
    "hand_over",
    "join_owner",
    "listen",
]
