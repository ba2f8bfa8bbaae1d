"""For all tests: no property is timed, since a first example may import half of the program on a busy machine."""

from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
