"""The program `tidings`: one module per command, grouped in folders by subject.

    tidings COMMAND ... ──> app.py ──> the function of the command ──> a library room ──> the screen

    app.py           imports the command that is run; the folders export nothing. A command in a
                     group, such as `tidings pipeline run`, is registered in the module of the
                     group; only some commands of `channel` and `bench` are registered in app.py
    filters/         check, convert, match, explain, doctor, graph
    relations/       relations
    subscriptions/   subscriptions, snapshot
    pipelines/       pipeline, outbox, dead-letters, types
    backtests/       backtest
    network/         router, channel, preprocessor, key, up, top, publish, subscribe
    demo/, bench/    demo; bench and its subcommands
    common/          code that commands share: options, files, errors, screen, shutdown

Commands contain no logic of their own: they read input, call a room and show its result. Heavy
packages are imported in the functions that need them. Only the entry point of the package imports
this room, to call `main`. Start at app.py; docs/command-line.md is for users.
"""

from tidings.cli.app import main

__all__ = ["main"]
