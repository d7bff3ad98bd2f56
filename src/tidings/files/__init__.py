"""Durable and private files, lock files, cache folders, secrets and settings.

    durable.py         replaces, moves and removes atomically, and syncs files and folders
    atomic_folder.py   fills or replaces whole folders: readers find the old one or the new one
    lock_files.py      one writer, or many readers, among the processes of one machine
    private.py         files (0600) and folders (0700) that only their owner can access
    places.py          local paths, and addresses such as s3://bucket/folder
    secret.py          files with tokens, refused if others can read them
    temporary.py       temporary folders of a process, or of all processes of a user
    toml_file.py       reads files of settings; reports all problems with line numbers
    user_cache.py      the user's cache folder, for data that can be rebuilt or fetched again

This room reads settings but does not interpret them. This room is for other rooms, not for users.
Start at durable.py.
"""

from tidings.files.atomic_folder import (
    current_folder,
    filling_folder,
    folder_identity,
    replacing_folder,
)
from tidings.files.durable import (
    make_durable_folder,
    move_aside,
    place_file,
    placing,
    remove_folder,
    replace_file,
    sync,
    sync_handle,
    write_at,
    write_file,
)
from tidings.files.lock_files import (
    hold_lock,
    holder_of,
    release_lock,
    share_lock,
    take_lock,
    try_lock,
)
from tidings.files.places import address_of, copy_here, local_path, open_place, scheme_of
from tidings.files.private import (
    FILE,
    FOLDER,
    make_folder,
    make_private,
    open_private,
    private_file,
)
from tidings.files.secret import SecretError, check_secret, read_secret
from tidings.files.temporary import process_folder, user_temporary_folder
from tidings.files.toml_file import TomlFile, find_lines, find_problems, read_toml
from tidings.files.user_cache import copy_missing, open_cache_folder, user_cache_folder

__all__ = [
    "FILE",
    "FOLDER",
    "SecretError",
    "TomlFile",
    "address_of",
    "check_secret",
    "copy_here",
    "copy_missing",
    "current_folder",
    "filling_folder",
    "find_lines",
    "find_problems",
    "folder_identity",
    "hold_lock",
    "holder_of",
    "local_path",
    "make_durable_folder",
    "make_folder",
    "make_private",
    "move_aside",
    "open_cache_folder",
    "open_place",
    "open_private",
    "place_file",
    "placing",
    "private_file",
    "process_folder",
    "read_secret",
    "read_toml",
    "release_lock",
    "remove_folder",
    "replace_file",
    "replacing_folder",
    "scheme_of",
    "share_lock",
    "sync",
    "sync_handle",
    "take_lock",
    "try_lock",
    "user_cache_folder",
    "user_temporary_folder",
    "write_at",
    "write_file",
]
