"""Durable and private files, and secrets in files: the only place that syncs and sets modes.

    durable.py   atomic replace, sync of files and folders: on the disk when a call returns
    private.py   files (0600) and folders (0700) for their owner alone, whatever the umask says
    secret.py    files with tokens; one that others can read is refused

It knows nothing of what the files hold. For other rooms, not for users. Start at durable.py.
"""

from tidings.files.atomic_folder import current_folder, folder_identity, replacing_folder
from tidings.files.durable import (
    make_durable_folder,
    place_file,
    placing,
    replace_file,
    sync,
    sync_handle,
    write_at,
    write_file,
)
from tidings.files.lock_files import hold_lock, release_lock, share_lock, take_lock, try_lock
from tidings.files.private import FOLDER, make_folder, make_private, open_private, private_file
from tidings.files.secret import SecretError, check_secret, read_secret
from tidings.files.user_cache import copy_missing, open_cache_folder, user_cache_folder

__all__ = [
    "FOLDER",
    "SecretError",
    "check_secret",
    "copy_missing",
    "current_folder",
    "folder_identity",
    "hold_lock",
    "make_durable_folder",
    "make_folder",
    "make_private",
    "open_cache_folder",
    "open_private",
    "place_file",
    "placing",
    "private_file",
    "read_secret",
    "release_lock",
    "replace_file",
    "replacing_folder",
    "share_lock",
    "sync",
    "sync_handle",
    "take_lock",
    "try_lock",
    "user_cache_folder",
    "write_at",
    "write_file",
]
