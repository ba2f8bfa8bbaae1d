"""Values of templates, their truth and their text form, by Go's rules."""

from collections.abc import Mapping
from typing import Final, NamedTuple


class RenderFailed(Exception):
    """A template cannot be rendered for this query; the message says why."""


class Struct(NamedTuple):
    """A Go struct: a fixed set of fields, while a map may have any key."""

    fields: Mapping[str, "Value"]


class _NoValue:
    """The value of a missing key of a map, Go's invalid value."""

    def __repr__(self) -> str:
        return "<no value>"


NO_VALUE: Final = _NoValue()

Value = str | int | bool | None | tuple["Value", ...] | Mapping[str, "Value"] | Struct | _NoValue
"""int is any of Go's integers; None is nil."""


def kind(value: Value) -> str:
    """The value's type in error messages."""
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
    """The truth of a value for `if`: false for the zero value of its type and for an empty one; a structure is true."""
    if isinstance(value, Struct):
        return True
    return value is not NO_VALUE and bool(value)


def printed(value: Value) -> str:
    """The value as Go's fmt prints it. Raises RenderFailed for a structure, whose text no record needs."""
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
    """`.name` of a structure or a map; NO_VALUE for a missing key of a map. Raises RenderFailed where Go does."""
    if isinstance(value, Struct):
        if name in value.fields:
            return value.fields[name]
        raise RenderFailed(f"there is no field .{name}")
    if isinstance(value, Mapping):
        return value.get(name, NO_VALUE)
    raise RenderFailed(f"found {kind(value)} before .{name}, expected a structure or a map")
