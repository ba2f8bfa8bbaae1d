"""The parameters of SVCB and HTTPS records in presentation format (RFC 9460 section 2.1 and appendix A)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from topodns.dns.name import Name
from topodns.dns.text_fields import MAX_STRING, BadRecord, Word, address, base64, octets, whole, wrong

_MANDATORY: Final = 0
_INVALID: Final = 65_535  # reserved (RFC 9460 section 14.3.2)
_NUMBERED: Final = re.compile(r"key(0|[1-9][0-9]{0,4})")
_LIST_PART: Final = re.compile(rb"\\[\\,]|,|[^\\,]+|\\", re.DOTALL)
_FORM: Final = 'key, key=value or key="value", with blanks between them'


def parameters(words: Sequence[Word], _: Name) -> bytes:
    """The wire form of parameters, `key`, `key=value` or `key="value"`, in the order of their numbers.

    Raises BadRecord also for what appendix D.3 calls a failure: a key twice, a value that is missing or must be, and
    mandatory keys that are not there.
    """
    values: dict[int, bytes] = {}
    for key, value in _pairs(words):
        number = _key(key)
        if number in values:
            raise BadRecord(f"found the parameter {key!r} twice")
        try:
            # A numbered key's value is wire form, also where the number has a name (RFC 9460 section 2.1).
            values[number] = value if _NUMBERED.fullmatch(key) else _READERS[number](value)
        except BadRecord as problem:
            raise BadRecord(f"in the parameter {key!r}: {problem}") from None
    _check_mandatory(values)
    return b"".join(
        number.to_bytes(2, "big") + len(value).to_bytes(2, "big") + value for number, value in sorted(values.items())
    )


def _pairs(words: Sequence[Word]) -> Iterator[tuple[str, bytes]]:
    """(key, decoded value) of each parameter; b"" without a value. Raises BadRecord."""
    taken = False
    for word, following in pairwise((*words, Word(""))):
        if taken:  # a value in quotes, with its key
            taken = False
            if following.joined:
                raise wrong(following.text, _FORM)
            continue
        key, sign, value = word.text.partition("=")
        taken = bool(sign) and not value and following.quoted and following.joined
        if word.quoted or not key or (following.joined and not taken):
            raise wrong(word.text, _FORM)
        yield key, octets(following.text if taken else value)


def _key(text: str) -> int:
    """The number of a key. Raises BadRecord."""
    match = _NUMBERED.fullmatch(text)
    number = int(match[1]) if match else _KEYS.get(text, _INVALID)
    if number >= _INVALID:
        raise wrong(text, f"keyNUMBER or one of {', '.join(_KEYS)}")
    return number


def _check_mandatory(values: Mapping[int, bytes]) -> None:
    """Raise BadRecord unless each mandatory key is there (RFC 9460 section 8)."""
    listed = values.get(_MANDATORY, b"")
    for at in range(0, len(listed) - 1, 2):
        number = int.from_bytes(listed[at : at + 2], "big")
        if number not in values:
            raise BadRecord(f"found no parameter {number}, which is mandatory")


def _list(value: bytes, empty: bool = False) -> list[bytes]:
    """The items of a list with commas, in which `\\,` and `\\\\` stand for octets (RFC 9460 appendix A.1).

    Raises BadRecord for an item without octets, unless `empty` allows it.
    """
    items = [b""]
    for part in _LIST_PART.findall(value):
        if part == b",":
            items.append(b"")
        elif part == b"\\":
            raise BadRecord("found a backslash before neither a comma nor a backslash")
        else:
            items[-1] += part.removeprefix(b"\\") if len(part) == 2 and part[:1] == b"\\" else part
    if not empty and b"" in items:
        raise BadRecord("found no value, or nothing between commas")
    return items


def _texts(value: bytes) -> list[str]:
    return [item.decode("latin-1") for item in _list(value)]


def _mandatory(value: bytes) -> bytes:
    numbers = sorted(map(_key, _texts(value)))
    if _MANDATORY in numbers or len(set(numbers)) < len(numbers):
        raise BadRecord("found itself or a key twice")
    return b"".join(number.to_bytes(2, "big") for number in numbers)


def _protocols(value: bytes) -> bytes:
    items = _list(value)
    if max(map(len, items)) > MAX_STRING:
        raise BadRecord(f"found an item of more than {MAX_STRING} octets")
    return b"".join(bytes((len(item),)) + item for item in items)


def _each(read: Callable[[str], bytes]) -> Callable[[bytes], bytes]:
    return lambda value: b"".join(map(read, _texts(value)))


def _one(read: Callable[[str], bytes]) -> Callable[[bytes], bytes]:
    return lambda value: read(value.decode("latin-1"))


def _none(value: bytes) -> bytes:
    if value:
        raise BadRecord("found a value, expected none")
    return value


def _any(value: bytes) -> bytes:
    if not value:
        raise BadRecord("found no value")
    return value


def _path(value: bytes) -> bytes:
    """The segments of a path, none for the root (draft-ietf-core-dns-over-coap section 3.2)."""
    return _protocols(value) if value else b""


def _groups(value: bytes) -> bytes:
    found = _each(whole(2))(value)
    if len({found[at : at + 2] for at in range(0, len(found), 2)}) < len(found) // 2:
        raise BadRecord("found a group twice")
    return found


_KEYS: Final[Mapping[str, int]] = {
    "mandatory": _MANDATORY,
    "alpn": 1,
    "no-default-alpn": 2,
    "port": 3,
    "ipv4hint": 4,
    "ech": 5,
    "ipv6hint": 6,
    "dohpath": 7,  # RFC 9461
    "ohttp": 8,  # RFC 9540
    "tls-supported-groups": 9,  # draft-ietf-tls-key-share-prediction
    "docpath": 10,  # draft-ietf-core-dns-over-coap
    "echconfig": 5,  # the name in drafts, which dnslib prints
}
_READERS: Final[Mapping[int, Callable[[bytes], bytes]]] = {
    0: _mandatory,
    1: _protocols,
    2: _none,
    3: _one(whole(2)),
    4: _each(address(4)),
    5: lambda value: _any(_one(base64)(value)),
    6: _each(address(6)),
    7: _any,
    8: _none,
    9: _groups,
    10: _path,
}
