"""What a template computes with, what counts as true, and how it is printed: by Go's rules."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class RenderFailed(Exception):
    """A template that cannot be written out for this query; says why."""


class Struct(NamedTuple):
    """A Go struct: it has these fields and no others, while a map may have any key."""

    fields: Mapping[str, "Value"]


class _NoValue:
    """What a map gives for a key that it has not got, where Go's template has an invalid value."""

    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE: Final = _NoValue()

Value = str | int | bool | None | tuple["Value", ...] | Mapping[str, "Value"] | Struct | _NoValue
"""int is any of Go's integers; None is nil."""


def kind(value: Value) -> str:
    """For messages."""
    match value:
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case str():
            return "a string"
        case Struct():
            return "a structure"
        case tuple():
            return "a list"
        case Mapping():
            return "a map"
        case None:
            return "nil"
        case _:
            return "no value"


def is_true(value: Value) -> bool:
    """What `if` makes of a value: false for the zero of its kind and for what is empty."""
    if isinstance(value, Struct):
        return True
    return value is not NO_VALUE and bool(value)


def printed(value: Value) -> str:
    """As Go's fmt prints it. Raises RenderFailed for a structure, whose text nobody needs in a record."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Struct():
            raise RenderFailed("a structure cannot be printed, only its fields")
        case tuple():
            return f"[{' '.join(map(printed, value))}]"
        case Mapping():
            return f"map[{' '.join(f'{key}:{printed(value[key])}' for key in sorted(value))}]"
        case None:
            return "<nil>"
        case _:
            return "<no value>"


def field_of(value: Value, name: str) -> Value:
    """`.name` of a value. Raises RenderFailed where Go does."""
    if isinstance(value, Struct):
        if name in value.fields:
            return value.fields[name]
        raise RenderFailed(f"there is no field .{name}")
    if isinstance(value, Mapping):
        return value.get(name, NO_VALUE)
    raise RenderFailed(f"found {kind(value)} before .{name}, expected a structure or a map")
