"""Rules that change the type, the class, TTLs and the rcode."""

import pytest

from tests.support.rewrite_directives import Setup, asked, question, resolve, rrset
from topodns.dns.message import Edns, Response
from topodns.dns.rrtype import Rcode

ANY, HINFO, CH, IN = 255, 13, 3, 1


@pytest.mark.parametrize(
    ("lines", "qtype", "below"),
    [
        ("rewrite type ANY HINFO", "ANY", "a.com. HINFO"),
        ("rewrite type ANY HINFO", "A", "a.com. A"),
        ("rewrite type A AAAA\nrewrite type AAAA MX", "A", "a.com. AAAA"),
        ("rewrite continue type A AAAA\nrewrite type AAAA MX", "A", "a.com. MX"),
    ],
)
def test_another_type_is_asked_for(lines: str, qtype: str, below: str) -> None:
    setup = Setup()
    resolve(lines, question(f"a.com. {qtype}"), setup)
    assert list(map(asked, setup.queries)) == [below]


@pytest.mark.parametrize(("qclass", "below"), [(CH, IN), (IN, IN), (4, 4)])
def test_another_class_is_asked_for(qclass: int, below: int) -> None:
    setup = Setup()
    resolve("rewrite class CH IN", question("a.com. A")._replace(qclass=qclass), setup)
    assert [query.qclass for query in setup.queries] == [below]


@pytest.mark.parametrize(
    ("rule", "name", "ttls"),
    [
        ("ttl a.com 30", "a.com.", [30, 30, 30]),
        ("ttl a.com 20-100", "a.com.", [20, 100, 60]),
        ("ttl a.com 50-", "a.com.", [50, 300, 60]),
        ("ttl a.com -100", "a.com.", [5, 100, 60]),
        ("ttl a.com 30", "x.a.com.", [5, 300, 60]),
        ("ttl prefix x 30", "x.a.com.", [30, 30, 30]),
        ("ttl prefix x 30", "xx.a.com.", [5, 300, 60]),
        ("ttl suffix a.com 30", "xa.com.", [30, 30, 30]),
        ("ttl substring b 30", "b.a.com.", [30, 30, 30]),
        (r"ttl regex ^.\.com\.$ 30", "b.com.", [30, 30, 30]),
        (r"ttl regex ^.\.com\.$ 30", "b.com.x.", [5, 300, 60]),
    ],
)
def test_ttls_of_all_sections_are_kept_within_bounds(rule: str, name: str, ttls: list[int]) -> None:
    setup = Setup(
        Response(
            answer=(rrset("@ 5 A 10.0.0.1"),),
            authority=(rrset("com. 300 NS ns.com."),),
            additional=(rrset("ns.com. 60 A 10.0.0.2"),),
        )
    )
    seen = resolve(f"rewrite {rule}", question(f"{name} A"), setup).response
    assert [each.ttl for each in (*seen.answer, *seen.authority, *seen.additional)] == ttls
    assert seen.answer[0].owner == b""


@pytest.mark.parametrize(
    ("lines", "decided", "edns", "seen"),
    [
        ("rewrite rcode a.com SERVFAIL NOERROR", Rcode.SERVFAIL, None, 0),
        ("rewrite rcode a.com SERVFAIL NOERROR", Rcode.NXDOMAIN, None, 3),
        ("rewrite rcode suffix com 3 0", Rcode.NXDOMAIN, None, 0),
        ("rewrite rcode b.com 3 0", Rcode.NXDOMAIN, None, 3),
        pytest.param(
            "rewrite continue rcode a.com NXDOMAIN REFUSED\nrewrite rcode a.com SERVFAIL NXDOMAIN",
            Rcode.SERVFAIL, None, 5, id="the last rule is first",
        ),
        pytest.param(
            "rewrite rcode a.com NOERROR BADCOOKIE", 0, Edns(1232, 0, False), 23, id="an extended one by EDNS"
        ),
        pytest.param("rewrite rcode a.com NOERROR BADCOOKIE", 0, None, 0, id="not without it"),
        pytest.param(
            "rewrite continue edns0 nsid set\nrewrite rcode a.com NOERROR BADCOOKIE", 0, None, 0,
            id="which must be the client's",
        ),
    ],
)  # fmt: skip
def test_another_rcode_is_written(lines: str, decided: int, edns: Edns | None, seen: int) -> None:
    assert resolve(lines, question("a.com. A", edns), Setup(Response(decided))).response.rcode == seen
