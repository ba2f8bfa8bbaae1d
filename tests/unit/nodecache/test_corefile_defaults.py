"""The defaults of `cache` on a node, and CoreDNS's defaults elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.node_cache_template import ENVIRONMENT, node_flags
from topodns.app.load import settings_from_text
from topodns.corefile.errors import ConfigError
from topodns.nodecache.corefile import NODE_CACHE, NodeCorefile
from topodns.plugins.block import ServerBlock
from topodns.plugins.cache.settings import Cache, Prefetch, ServeStale, Share

BLOCK = "example.org {{\n cache {}\n forward . 192.0.2.1\n}}"
ORIGINS = (("example", "org"),)
FOR_A_DAY = ServeStale(86_400.0, verify=True, verify_timeout=1.8, ttl=30, recheck=30.0)


def blocks(directory: Path, text: str) -> tuple[ServerBlock, ...]:
    return NodeCorefile(node_flags(directory), ENVIRONMENT).settings(text).blocks


def cache(directory: Path, words: str) -> Cache:
    (block,) = blocks(directory, BLOCK.format(words))
    cache: Cache = block.settings["cache"]
    return cache


def test_it_is_rfc_8767_for_a_day_and_raises_no_ttl(tmp_path: Path) -> None:
    assert cache(tmp_path, "") == Cache(ORIGINS, Share(3600, 0), Share(1800, 0), serve_stale=FOR_A_DAY)


def test_a_server_keeps_to_coredns() -> None:
    (block,) = settings_from_text(BLOCK.format(""), "Corefile", 53, {}).blocks
    assert block.settings.get("cache") == Cache(ORIGINS, Share(3600, 5), Share(1800, 5), serve_stale=None)


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("30", {"success": Share(30, 0), "denial": Share(30, 0)}),
        ("{\n success 9984 30\n denial 9984 5\n }", {"success": Share(30, 0), "denial": Share(5, 0)}),
        ("{\n success 9984 30 10\n }", {"success": Share(30, 10)}),  # who writes a MINTTL wants it
        ("{\n serve_stale off\n }", {"serve_stale": None}),
        ("{\n serve_stale 0\n }", {"serve_stale": None}),
        ("{\n serve_stale\n }", {"serve_stale": ServeStale()}),
        ("{\n serve_stale 1h verify 500ms\n }", {"serve_stale": ServeStale(verify=True, verify_timeout=0.5)}),
        (
            "{\n serve_stale_policy prefer_positive\n }",
            {"serve_stale": replace(FOR_A_DAY, prefer_positive=True)},
        ),
        ("{\n prefetch 5\n }", {"prefetch": Prefetch(5)}),
    ],
)
def test_written_options_count_and_the_others_are_the_node_s_defaults(
    tmp_path: Path, words: str, changed: dict[str, object]
) -> None:
    assert cache(tmp_path, words) == replace(NODE_CACHE, origins=ORIGINS, **changed)  # type: ignore[arg-type]


def test_without_the_directive_nothing_is_kept(tmp_path: Path) -> None:
    (block,) = blocks(tmp_path, "example.org {\n forward . 192.0.2.1\n}")
    assert block.settings.get("cache") is None


def test_a_policy_for_disabled_serve_stale_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'serve_stale_policy' without 'serve_stale'"):
        cache(tmp_path, "{\n serve_stale off\n serve_stale_policy prefer_positive\n }")


def test_a_stub_domain_s_cache_is_a_node_s_too(tmp_path: Path) -> None:
    corefile = NodeCorefile(node_flags(tmp_path), ENVIRONMENT, str(tmp_path / "resolv.conf"))
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    (tmp_path / "kube-dns").mkdir(exist_ok=True)
    (tmp_path / "kube-dns" / "stubDomains").write_text('{"acme.local": ["192.0.2.1"]}')
    (tmp_path / "Corefile.base").write_text(".:53 {\n forward . 192.0.2.2\n}\n")
    rendered = corefile.render(corefile.read())
    assert rendered.problems == ()
    stub = corefile.settings(rendered.text).blocks[-1]
    assert stub.settings.get("cache") is not None
    assert stub.settings["cache"].serve_stale == FOR_A_DAY
