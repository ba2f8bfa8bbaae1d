"""YAML text of manifests: scalars, keys, aliases, and what is refused."""

import pytest

from tests.support.manifest_text import laughs, parsed, problem
from topodns.kube.manifests.documents import parse_documents


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        ("text", "text"),
        ("10.96.0.1", "10.96.0.1"),
        ("fd00::1", "fd00::1"),
        ("2024-05-01T10:00:00Z", "2024-05-01T10:00:00Z"),
        ("2024-05-01", "2024-05-01"),
        ("12:30", "12:30"),
        ("53", 53),
        ("-7", -7),
        ("0x1F", 31),
        ("0o17", 15),
        ("017", 15),
        ("-017", -15),
        ("0b101", 5),
        ("0XFF", 255),
        ("08", 8.0),
        ("1_000", 1000),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", 2.0**64),
        ("1e999", "1e999"),
        ("5.", 5.0),
        ("y", True),
        ("N", False),
        ("yeS", "yeS"),
        (".inf", ".inf"),
        ("0x", "0x"),
        ("+", "+"),
        ("1:30", "1:30"),
        ("0", 0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("'53'", "53"),
        ('"true"', "true"),
        ("!!str 53", "53"),
        ("true", True),
        ("no", False),
        ("~", None),
        ("null", None),
        ("", None),
        ("'~'", "~"),
        ("1.2.3", "1.2.3"),
        ("7f", "7f"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_plain_scalars_have_the_types_of_kubernetes(scalar: str, value: object) -> None:
    [(found, _)] = parsed(f"kind: X\nvalue: {scalar}\n")
    assert (found["value"], type(found["value"])) == (value, type(value))


def test_keys_are_always_text() -> None:
    text = "kind: X\n8080: a\nTrue: b\n0x10: c\n'0x10': d\n1.5: e\noff: f\n"
    keys = {"kind": "X", "8080": "a", "true": "b", "16": "c", "0x10": "d", "1.5": "e", "false": "f"}
    assert parsed(text) == [(keys, 1)]


def test_of_a_key_that_is_there_twice_the_last_value_counts() -> None:
    text = """\
        kind: List
        items:
        - kind: Pod
        items:
        - kind: Node
          kind: Service
        """
    assert parsed(text) == [({"kind": "Service"}, 5)]


@pytest.mark.parametrize("octets", [b"f\xfcr", b"\0", b"\x07\x1b[31m", b"\x85\x80", b"\xed\xa0\x80", b"\x7f"])
def test_any_octets_may_be_in_a_comment(octets: bytes) -> None:
    assert parsed(b"# %b\nkind: Pod # %b\n" % (octets, octets)) == [({"kind": "Pod"}, 2)]
    assert parsed(b"{kind: Pod, # %b\n}\n" % octets) == [({"kind": "Pod"}, 1)]


@pytest.mark.parametrize("octets", [b"\0", b"\x07\x1b[31m", b"\x7f"])
def test_control_characters_are_no_part_of_a_value(octets: bytes) -> None:
    for text in (b"kind: Pod\na: b%b\n", b"kind: Pod\n'%b': b\n", b'kind: Pod\na: [{b: "%b"}]\n'):
        assert problem(text % octets) == "m.yaml:2: found a control character, expected text"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!Sub ${x}", "${x}"),
        ("!Ref 'x'", "x"),
        ("!!timestamp 2020-01-01", "2020-01-01"),
        ("!!python/name:os.system x", "x"),
        ("! 5", "5"),
        ("!!str 5", "5"),
        ("!!int 5", 5),
        ("!If [a, b]", ["a", "b"]),
        ("!!set {a, b}", {"a": None, "b": None}),
        ("!!binary aGVsbG8=", "hello"),
        ("!!binary |\n  aGVs\n  bG8=", "hello"),
        ("!!binary /w==", "\ufffd"),
    ],
)
def test_a_tag_that_kubectl_does_not_know_is_passed_over(text: str, value: object) -> None:
    assert parsed(f"kind: X\na: {text}\n") == [({"kind": "X", "a": value}, 1)]


@pytest.mark.parametrize("tag", ["!zone", "!topology.kubernetes.io/zone", "!"])
def test_a_tag_in_place_of_a_value_is_named(tag: str) -> None:
    """It was meant to be a topology key, and is no value without quotes."""
    remarks = list[str]()
    list(
        parse_documents(
            f"kind: X\nkeys: {tag}\n".encode(), "m.yaml", lambda line, text: remarks.append(f"{line} {text}")
        )
    )
    advice = "put a text that begins with !, * or & in quotes"
    assert remarks == [f"2 {tag} is a tag, with no value behind it; {advice}"]


def test_an_alias_may_be_a_key() -> None:
    text = "kind: X\nlabels: {team: &t web, *t : yes, ? *t : no}\nports: {a: &p 80, *p : b}\n"
    assert parsed(text) == [({"kind": "X", "labels": {"team": "web", "web": False}, "ports": {"a": 80, "80": "b"}}, 1)]
    remarks = list[int]()
    list(parse_documents(text.encode(), "m.yaml", lambda line, remark: remarks.append(line)))
    assert remarks == [2]  # `web` is a key twice


def test_anchors_aliases_and_merge_keys_are_followed() -> None:
    text = """\
        kind: X
        base: &base {a: 1, b: 2}
        again: *base
        merged: {<<: *base, b: 3}
        several: {<<: [{b: 4}, *base]}
        """
    [(found, _)] = parsed(text)
    assert found["again"] == {"a": 1, "b": 2}
    assert found["merged"] == {"a": 1, "b": 3}
    assert found["several"] == {"a": 1, "b": 4}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kind: X\n  bad: indent\n", "m.yaml:2: mapping values are not allowed in this context"),
        ("kind: 'open\n", "m.yaml:1: found unexpected end of stream"),
        ("kind: X\n[a]: b\n", "m.yaml:2: a key must be text"),
        ("kind: X\n? {a: b}\n: c\n", "m.yaml:2: a key must be text"),
        ("kind: X\na: !!binary a\n", "m.yaml:2: no base64 behind !!binary: "),
        ("kind: X\na: &a [b]\n? *a\n: c\n", "m.yaml:3: a key must be text"),
        (
            "kind: X\nkeys: *,zone\n",
            "m.yaml:2: did not find expected alphabetic or numeric character; "
            "put a text that begins with !, * or & in quotes",
        ),
        (
            "kind: X\nkeys: !zone,*\n",
            "m.yaml:2: did not find expected whitespace or line break; put a text that begins with !, * or & in quotes",
        ),
        ("kind: X\na: *nowhere\n", "m.yaml:2: alias *nowhere stands for no value that ended before it"),
        ("kind: X\na: &a [*a]\n", "m.yaml:2: alias *a stands for no value that ended before it"),
        ("a: &a x\n---\nb: *a\n", "m.yaml:3: alias *a stands for no value"),
        ("kind: X\na: {<<: text}\n", "m.yaml:2: the value of << must be a mapping"),
        (laughs(9), "m.yaml:7: aliases repeat more than 100000 values"),
        ("kind: X\na: " + "[" * 200 + "]" * 200, "m.yaml:2: nested more than 100 levels deep"),
        (b"kind: X\na: \x07\n", "m.yaml:2: found a control character, expected text"),
    ],
    ids=lambda value: repr(value[:30]),
)
def test_text_that_is_no_manifest_s_yaml_is_refused_with_file_and_line(text: str | bytes, expected: str) -> None:
    assert problem(text).startswith(expected)
