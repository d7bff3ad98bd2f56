"""A node's file: read, checked, and made into a node.

    config_file.py           a router's file, read and checked
    preprocessor_table.py    the kind of interest, in a rendezvous point's file

Used by the files of trees and by cli, which imports it from `broker`. Start at config_file.py.
"""

from tidings.broker.config.config_file import (
    Config,
    ConfigError,
    Tls,
    address_of,
    find_column_problems,
    find_grant_problems,
    find_time_problems,
    find_token_problems,
    load_config,
    make_door,
    make_node,
    read_kind,
    renew,
    revise,
)
from tidings.broker.config.preprocessor_table import (
    PreprocessorTable,
    find_preprocessor_problems,
    flatten_columns,
)

__all__ = [
    "Config",
    "ConfigError",
    "PreprocessorTable",
    "Tls",
    "address_of",
    "find_column_problems",
    "find_grant_problems",
    "find_preprocessor_problems",
    "find_time_problems",
    "find_token_problems",
    "flatten_columns",
    "load_config",
    "make_door",
    "make_node",
    "read_kind",
    "renew",
    "revise",
]
