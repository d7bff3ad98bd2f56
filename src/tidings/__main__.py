"""`python -m tidings` runs the command line, even if the program `tidings` is not on the path."""

from tidings.cli import main

if __name__ == "__main__":
    main()
