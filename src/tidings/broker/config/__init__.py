"""A node's file: read, checked, and made into a node.

    file ──config_file──> node_settings ──configured_node──> a node that can be started
               `──config_problems──> every problem, with its line
    SIGHUP ──renewal──> the file again, for the node that runs

    config_file.py           reads a router's file; its docstring shows all settings
    node_settings.py         the settings, as the file has them
    config_problems.py       the problems in a file, each with its place
    configured_node.py       the node that a file describes
    renewal.py               a file that is read again while its node runs
    preprocessor_table.py    the kind of interest, in a rendezvous point's file
    relations_table.py       places, times, tags and people, in the same file

The keys of `[limits]` are the fields of routing/protocol/limits.py, so a new limit needs no change
in this folder.

Used by the files of trees and by cli, which imports it from `broker`. Start at config_file.py.
"""

from tidings.broker.config.config_file import load_config, read_kind, read_ticket_key
from tidings.broker.config.config_problems import (
    find_column_problems,
    find_grant_problems,
    find_limit_problems,
    find_ticket_problems,
    find_time_problems,
    find_token_oddities,
    find_token_problems,
)
from tidings.broker.config.configured_node import make_door, make_node
from tidings.broker.config.node_settings import (
    Config,
    ConfigError,
    Tls,
    address_of,
    list_addresses,
)
from tidings.broker.config.preprocessor_table import (
    PreprocessorTable,
    find_preprocessor_problems,
    flatten_columns,
)
from tidings.broker.config.relations_table import RelationsTable, find_relations_problems
from tidings.broker.config.renewal import renew, revise

__all__ = [
    "Config",
    "ConfigError",
    "PreprocessorTable",
    "RelationsTable",
    "Tls",
    "address_of",
    "find_column_problems",
    "find_grant_problems",
    "find_limit_problems",
    "find_preprocessor_problems",
    "find_relations_problems",
    "find_ticket_problems",
    "find_time_problems",
    "find_token_oddities",
    "find_token_problems",
    "flatten_columns",
    "list_addresses",
    "load_config",
    "make_door",
    "make_node",
    "read_kind",
    "read_ticket_key",
    "renew",
    "revise",
]
