"""The program `tidings`; `python -m tidings` runs it even if the program is not on the path."""

import gc
import sys

INTERRUPTED = 130  # the exit code of a program that Ctrl-C ended


def main() -> None:
    """Run the command line. Ctrl-C ends the program without a traceback, even while the program is
    being loaded."""
    gc.disable()  # imports create no garbage; a command enables the collector when it begins
    try:
        from tidings.cli import main as run
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
