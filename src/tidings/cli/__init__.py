"""The command line: one module per command, and what they share."""

from tidings.cli.app import main

__all__ = ["main"]
