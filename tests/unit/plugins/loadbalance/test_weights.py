from collections import deque
from ipaddress import ip_address

import pytest

from tests.support.weights import parse_weights
from topodns.dns.name import name_wire, parse_name
from topodns.files.text import MAX_LINE
from topodns.plugins.loadbalance import weights as weight_file
from topodns.plugins.loadbalance.weights import LINES_AT_ONCE, BadWeights


def readable(text: str) -> dict[str, dict[str, int]]:
    weights = parse_weights(text)
    names = {name_wire(parse_name(name)): name for name in ("a.example.", "b.example.", ".")}
    return {
        names[owner]: {str(ip_address(address)): weight for address, weight in of.items()}
        for owner, of in weights.items()
    }


def test_addresses_belong_to_the_name_above_them() -> None:
    text = """
        # weights of the demo
        a.example.
        10.0.0.1 3
          2001:db8::1\t255

        B.Example
        # the second
        10.0.0.1 1
    """
    assert readable(text) == {"a.example.": {"10.0.0.1": 3, "2001:db8::1": 255}, "b.example.": {"10.0.0.1": 1}}


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        pytest.param("", {}, id="empty"),
        pytest.param("a.example\n", {"a.example.": {}}, id="a name alone"),
        pytest.param("a.example\n10.0.0.1 1\n10.0.0.1 9\n", {"a.example.": {"10.0.0.1": 1}}, id="the first stands"),
        pytest.param(
            "a.example\n10.0.0.1 1\n.\n10.0.0.9 9\nA.EXAMPLE.\n10.0.0.2 2\n",
            {"a.example.": {"10.0.0.1": 1, "10.0.0.2": 2}, ".": {"10.0.0.9": 9}},
            id="a name comes back",
        ),
        pytest.param("a.example\n::ffff:10.0.0.1 7", {"a.example.": {"10.0.0.1": 7}}, id="IPv4-mapped is IPv4"),
    ],
)
def test_a_weight_file_may_say(text: str, weights: dict[str, dict[str, int]]) -> None:
    assert readable(text) == weights


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a.example\n10.0.0.1 0", "line 2: weight '0' is not between 1 and 255"),
        ("a.example\n10.0.0.1 256", "line 2: weight '256'"),
        ("a.example\n10.0.0.1 -1", "line 2: weight '-1'"),
        ("a.example\n10.0.0.1 1_0", "line 2: weight '1_0'"),
        ("10.0.0.1 1", "line 1: no domain name above '10.0.0.1'"),
        ("a.example\n\n10.0.0.1", "line 3: found only '10.0.0.1'"),
        ("a.example\nweb 1", "line 2: 'web' is no IP address"),
        ("a.example\n10.0.0.1 1 2", "line 2: found 3 words"),
        ("a..example", "line 1: empty label"),
    ],
)
def test_a_bad_line_is_named(text: str, problem: str) -> None:
    with pytest.raises(BadWeights, match=problem):
        parse_weights(text)


@pytest.mark.parametrize("line", ["", "# comment", "a.example.", "10.0.0.1 1"])
def test_a_step_reads_no_more_lines_than_lines_at_once(line: str) -> None:
    for before in range(0, 20 * LINES_AT_ONCE, LINES_AT_ONCE):
        content = f"a.example.\n{line}\n" + f"{line}\n" * before + "a..b"
        steps = weight_file.parse_weights(content.encode())
        for _ in range(before // LINES_AT_ONCE):
            next(steps)
        with pytest.raises(BadWeights, match=f"line {before + 3}: "):
            deque(steps, maxlen=0)


def test_a_line_longer_than_its_limit_is_bad_even_if_it_is_a_comment() -> None:
    assert readable("a.example\n#" + "x" * (MAX_LINE - 1)) == {"a.example.": {}}
    with pytest.raises(BadWeights, match=f"^line 2: more than {MAX_LINE} octets$"):
        parse_weights("a.example\n#" + "x" * MAX_LINE)
