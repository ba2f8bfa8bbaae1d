"""Forwarding to ourselves, refused before anything is served."""

import pytest

from tests.support.corefile_settings import settings
from tests.support.model_builders import packed
from topodns.app.self_forwarding import refuse_self_forwarding
from topodns.corefile.errors import ConfigError
from topodns.dns.addresses import packed_address

OWN = {packed("10.1.2.3"), packed("fd00::3")}


@pytest.mark.parametrize(
    "corefile",
    [
        ".:53 {\nbind 192.0.2.9\nforward . 192.0.2.9\n}",
        ".:53 {\nbind 192.0.2.9\nrewrite ttl suffix test 5\nforward . 192.0.2.9\n}",
        ".:53 {\nbind 192.0.2.9 fd00::3\nforward . fd00::3 192.0.2.9\n}",
        ".:5300 {\nbind 127.0.0.1\nforward . 127.0.0.1:5300\n}",
        "example:53 {\nbind 127.0.0.1\nforward example 127.0.0.1\n}",
        ".:53 {\nbind 127.0.0.1\nforward . ::ffff:127.0.0.1\n}",
        ".:53 {\nbind fe80::3%eth0\nforward . fe80::3%eth0\n}",
        "example:53 {\nbind 127.0.0.1\nwhoami\n}\n.:53 {\nbind 127.0.0.1\nforward . 127.0.0.1\n}",
        ".:53 {\nbind 127.0.0.1\nforward example 127.0.0.1\n}",
        "example:53 {\nbind 127.0.0.1\nforward . 127.0.0.1\n}\n.:53 {\nwhoami\n}",
        "a.example:53 b.example:53 {\nbind 127.0.0.1\nforward b.example 127.0.0.1\n}",
    ],
)
def test_n16_an_upstream_that_is_the_block_itself_is_refused(corefile: str) -> None:
    with pytest.raises(ConfigError, match="which is this server block itself: a loop"):
        refuse_self_forwarding(settings(corefile), OWN)


@pytest.mark.parametrize(
    "corefile",
    [
        pytest.param(".:53 {\nforward . 127.0.0.11\n}", id="the packet filter may redirect a loopback address"),
        pytest.param(".:53 {\nforward . 10.1.2.3\n}", id="or one of the machine"),
        pytest.param(".:53 {\nforward . fd00::3\n}", id="of IPv6 too"),
        pytest.param(".:53 {\nbind 0.0.0.0\nforward . 127.0.0.1\n}", id="all addresses of a family"),
        pytest.param(".:53 {\nbind 127.0.0.1\nforward . 192.0.2.1 127.0.0.1\n}", id="another upstream may answer"),
        pytest.param(
            "new:53 {\nbind 127.0.0.1\nrewrite name suffix .new .old\nforward . 127.0.0.1\n}\n.:53 {\nwhoami\n}",
            id="another block may have the new name",
        ),
        pytest.param(
            ".:53 {\nbind 127.0.0.1\ntemplate IN A {\nrcode NXDOMAIN\n}\nforward . 127.0.0.1\n}",
            id="a template may answer",
        ),
        pytest.param(
            ".:53 {\nbind 127.0.0.1\nacl {\nblock net 127.0.0.0/8\n}\nforward . 127.0.0.1\n}",
            id="an access list may end it",
        ),
    ],
)
def test_n16_one_that_may_be_the_block_itself_is_warned_of(corefile: str) -> None:
    (line,) = refuse_self_forwarding(settings(corefile), OWN)
    assert "may be this server block itself, a loop: `loop` would find out, which the block does not have" in line


@pytest.mark.parametrize(
    "corefile",
    [
        ".:53 {\nforward . 192.0.2.1\n}",
        ".:53 {\nforward . 127.0.0.1:5300\n}",
        ".:53 {\nbind 192.0.2.9\nforward . 127.0.0.53\n}",
        ".:53 {\nbind fe80::3%eth0\nforward . fe80::3%eth1\n}",
        ".:53 {\nforward . 127.0.0.1:5300\n}\n.:5300 {\nwhoami\n}",
        "example:53 {\nwhoami\n}\n.:53 {\nforward example 127.0.0.1\n}",
        "example:53 {\nforward other 127.0.0.1\n}",
        ".:53 {\nview own {\nexpr type() == 'A'\n}\nforward . 127.0.0.1\n}",
        "example:53 {\nbind 127.0.0.1\nforward . 127.0.0.1 {\nexcept example\n}\n}",
        ".:853 {\nbind 127.0.0.1\nforward . tls://127.0.0.1\n}",
    ],
)
def test_n16_another_server_or_another_block_may_be_asked(corefile: str) -> None:
    assert refuse_self_forwarding(settings(corefile), OWN) == ()


def test_n16_the_error_and_the_warning_have_the_line_of_the_forward() -> None:
    before = "example {\nwhoami\n}\n. {\nerrors\nloop\n"
    with pytest.raises(ConfigError) as caught:
        refuse_self_forwarding(settings(f"{before}bind 127.0.0.1\nforward . 127.0.0.1\n}}"), OWN)
    assert str(caught.value) == "Corefile:8: 'forward' has 127.0.0.1:53, which is this server block itself: a loop"
    assert refuse_self_forwarding(settings(f"{before}forward . 127.0.0.1\n}}"), OWN) == (
        "plugin/forward: 127.0.0.1:53 may be this server block itself, a loop: `loop` finds out (Corefile:7)",
    )


def test_each_block_is_looked_at_once_however_many_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """A ConfigMap may have a thousand stub domains."""
    looked: list[str] = []

    def look(text: str) -> bytes:
        looked.append(text)
        return packed_address(text)

    monkeypatch.setattr("topodns.app.self_forwarding.packed_address", look)
    blocks = [f"d{number}.test:53 {{\nbind 192.0.2.9\nforward . 192.0.2.1\n}}" for number in range(100)]
    refuse_self_forwarding(settings("\n".join(blocks)), OWN)
    assert len(looked) <= 2 * len(blocks)
