"""Lines on standard error while a bench runs; its figures are on standard output."""

import sys


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
