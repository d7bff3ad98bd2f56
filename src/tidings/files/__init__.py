"""Files and folders: for their owner alone (private.py), on the disk when a call returns
(durable.py), and secrets that are read from files (secret.py)."""

from tidings.files.durable import make_durable_folder, replace_file, sync, write_at
from tidings.files.private import FOLDER, make_folder, make_private, open_private, private_file
from tidings.files.secret import SecretError, check_secret, read_secret

__all__ = [
    "FOLDER",
    "SecretError",
    "check_secret",
    "make_durable_folder",
    "make_folder",
    "make_private",
    "open_private",
    "private_file",
    "read_secret",
    "replace_file",
    "sync",
    "write_at",
]
