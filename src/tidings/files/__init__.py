"""Durable and private files, and secrets in files: the only place that syncs and sets modes.

    durable.py   atomic replace, sync of files and folders: on the disk when a call returns
    private.py   files (0600) and folders (0700) for their owner alone, whatever the umask says
    secret.py    files with tokens; one that others can read is refused

It knows nothing of what the files hold. For other rooms, not for users. Start at durable.py.
"""

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
