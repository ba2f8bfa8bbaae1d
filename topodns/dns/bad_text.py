"""What the texts of files are refused with. Alone here, so that a program without such files can name it."""


class BadText(ValueError):
    """Text that cannot be used; says what was found and, where it is one line's fault, the line."""
