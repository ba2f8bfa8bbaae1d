"""Elements of lists that cannot be read: each is left out of its object, with a problem, and costs no other element.

The API server validates its own kinds, but stored objects keep what older versions accepted, and manifests and custom
resources may hold anything. `fields` leaves out elements with a bad text or number; `without_unreadable` those whose
JSON has another type than the API's. An error outside of any list still makes the whole object unreadable.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final, get_args, get_origin, get_type_hints

_SHOWN: Final = 200  # characters of the text of a problem
_NAMED: Final = 3  # problems of one object that a log line has
_NAMES: Final[Mapping[type, str]] = {str: "text", int: "an integer", bool: "true or false"}


def first_problems(problems: Sequence[str], number: int = 0) -> str:
    """The first problems of one object as a clause; `number` counts all, if `problems` are only the first of them."""
    named = problems[:_NAMED]
    more = max(number, len(problems)) - len(named)
    return "; ".join((*named, f"and {more} more") if more else named)


class LeftOutElements:
    """The elements left out of one object: `first` has paths and problems of the first ones, `number` counts all."""

    __slots__ = ("first", "number")

    def __init__(self) -> None:
        self.first: tuple[str, ...] = ()
        self.number = 0

    def add(self, place: str, problem: object) -> None:
        """`place` is the path of the element in the object, as in `endpoints[1].addresses[0]`."""
        if self.number < _NAMED:
            self.first = (*self.first, f"{place}: {str(problem)[:_SHOWN]}")
        self.number += 1

    def __str__(self) -> str:
        """One clause for a log line, if something was left out."""
        return f"left out {first_problems(self.first, self.number)}"


class _Unreadable(Exception):
    """A value that is not of the type of its field."""


def without_unreadable(value: Mapping[str, Any], struct: type, left_out: LeftOutElements) -> Mapping[str, Any]:
    """A parsed JSON object without the elements of its lists that the types of `struct` do not allow.

    An element is left out where any of its fields is unreadable; in lists within each other that is the innermost one.
    What is unreadable outside of any list stays, and is refused when `struct` is made.
    """
    return _fields(value, struct, "", left_out, within=False)


def _fields(
    value: Mapping[str, Any], struct: type, place: str, left_out: LeftOutElements, within: bool
) -> Mapping[str, Any]:
    """The fields of `struct`; others are dropped. `within`: the object is in a list, so that an error is its own."""
    found = {}
    for name, expected in field_types(struct).items():
        if name not in value:
            continue
        try:
            found[name] = _readable(value[name], expected, f"{place}.{name}" if place else name, left_out, within)
        except _Unreadable:
            if within:
                raise
            found[name] = value[name]
    return found


@cache
def field_types(struct: Any) -> Mapping[str, Any]:
    """The type of each field of a struct by its name in JSON."""
    hints = get_type_hints(struct)
    return {
        encoded: hints[name]
        for name, encoded in zip(struct.__struct_fields__, struct.__struct_encode_fields__, strict=True)
    }


def _readable(value: Any, expected: Any, place: str, left_out: LeftOutElements, within: bool) -> Any:
    """The value, its lists without unreadable elements. Raises _Unreadable where it is of another type itself."""
    types = [each for each in get_args(expected) or (expected,) if each is not type(None)]
    kind = types[0] if len(types) == 1 else expected  # `X | None` is X: every field may be null
    if value is None:
        return None
    if get_origin(kind) is list:
        return _elements(_checked(value, list, place, "a list"), get_args(kind)[0], place, left_out)
    if get_origin(kind) is dict and get_args(kind)[1] is Any:
        return _checked(value, dict, place, "an object")
    if get_origin(kind) is dict:
        return _texts(_checked(value, dict, place, "an object"), place)
    if kind in _NAMES:
        return _scalar(value, kind, place)
    return _fields(_checked(value, dict, place, "an object"), kind, place, left_out, within)


def _texts(values: dict[str, Any], place: str) -> dict[str, str]:
    """The texts of a mapping; null is "", as it is to Go (kubernetes/kubernetes#129257)."""
    return {_text(key, place): "" if text is None else _text(text, f"{place}.{key}") for key, text in values.items()}


def _elements(values: list[Any], expected: Any, place: str, left_out: LeftOutElements) -> list[Any]:
    found = []
    for at, value in enumerate(values):
        own = f"{place}[{at}]"
        try:
            if value is None:
                raise _Unreadable(own, "found null")
            found.append(_readable(value, expected, own, left_out, within=True))
        except _Unreadable as error:
            left_out.add(*error.args)
    return found


def _scalar(value: Any, kind: type, place: str) -> Any:
    if kind is str:
        return _text(value, place)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)  # 80.0 is 80, in JSON and to the fast way
    if type(value) is not kind:
        raise _Unreadable(place, f"expected {_NAMES[kind]}, found {described(value)}")
    return value


def _text(value: Any, place: str) -> str:
    """Half of a surrogate pair is no text: no octets can be made of it (RFC 3629 section 3)."""
    text: str = _checked(value, str, place, "text")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Unreadable(place, "found octets that are no UTF-8, expected text") from None
    return text


def _checked(value: Any, kind: type, place: str, name: str) -> Any:
    if not isinstance(value, kind):
        raise _Unreadable(place, f"expected {name}, found {described(value)}")
    return value


def described(value: Any) -> str:
    """The value for a message, without a text's content: a manifest may hold a secret."""
    if isinstance(value, str):
        return "text"
    return "an object" if isinstance(value, dict) else "a list" if isinstance(value, list) else repr(value)[:40]
