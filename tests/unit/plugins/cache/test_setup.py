"""The options of `cache`, and its place in a server block: below all directives but `forward`."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.chains import chain_of, process, set_up
from tests.support.corefile_settings import block_problem, only_block, problem
from tests.support.forward_with_upstreams import ForwardScene
from tests.support.query_builders import ask, client
from tests.support.scripted_upstream import whatever
from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import parse_blocks
from topodns.dns.dso import DsoType, Tlv
from topodns.dns.message import Flag
from topodns.dns.name import ROOT, parse_name
from topodns.nodecache.corefile import NODE_CACHE
from topodns.plugins.cache.handler import ResponseCache
from topodns.plugins.cache.persistence import Persistence
from topodns.plugins.cache.settings import Cache, Persist, Prefetch, ServeStale, Share
from topodns.plugins.cache.setup import parse_cache
from topodns.plugins.context import Context
from topodns.plugins.setup import Identity, Process
from topodns.query.deferred import pursue
from topodns.query.plugin import ChainPart, Resolution, settled

EXAMPLE, TEST = parse_name("example."), parse_name("test.")
BLOCK = (parse_name("block."),)


def parsed(lines: str) -> Cache:
    """The settings of these lines of a block for block.; they start on line 2."""
    (block,) = parse_blocks(tokenize(f"block {{\n{lines}\n}}", "Corefile"))
    return parse_cache(block.directives[0], Context(BLOCK, "/etc/dns"))


def options(*lines: str) -> Cache:
    """The settings of these options; they start on line 3."""
    return parsed("cache . {\n" + "\n".join(lines) + "\n}")


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("cache", Cache(BLOCK)),
        ("cache 30", Cache(BLOCK, Share(30), Share(30))),
        ("cache example test.", Cache((EXAMPLE, TEST))),
        ("cache 30 example", Cache((EXAMPLE,), Share(30), Share(30))),
        ("cache 30s", Cache((parse_name("30s."),))),
        ("cache 10.0.0.0/8", Cache((parse_name("10.in-addr.arpa."),))),
        ("cache {\n}", Cache(BLOCK)),
    ],
)
def test_the_longest_ttl_and_the_zones(line: str, expected: Cache) -> None:
    assert parsed(line) == expected


@pytest.mark.parametrize(
    ("line", "warned"),
    [
        ("cache 30", []),
        ("cache 30s", ["30s"]),
        ("cache 30 1m30s", ["1m30s"]),
        ("cache 30s.", []),
        ("cache 5m example.org", ["5m"]),
    ],
)
def test_a_zone_that_looks_like_a_ttl_is_warned_of(line: str, warned: list[str]) -> None:
    (block,) = parse_blocks(tokenize(f"block {{\n{line}\n}}", "Corefile"))
    lines: list[str] = []
    parse_cache(block.directives[0], Context(BLOCK, warn=lines.append))
    assert lines == [
        f"plugin/cache: '{word}' is a zone, as in CoreDNS, and answers outside it are not cached; "
        "a TTL is a number of seconds without a unit (Corefile:2)"
        for word in warned
    ]


def test_the_defaults_are_those_of_coredns() -> None:
    cache = parsed("cache .")
    assert (cache.success.max_ttl, cache.success.min_ttl, cache.success.capacity) == (3600, 5, 9984)
    assert (cache.denial.max_ttl, cache.denial.min_ttl, cache.denial.capacity) == (1800, 5, 9984)
    assert (cache.servfail, cache.prefetch, cache.serve_stale, cache.keepttl) == (5, None, None, False)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["success 5000"], Cache(success=Share(3600, 5, 4864))),  # CoreDNS has 256 shards of the same size
        (["success 100"], Cache(success=Share(3600, 5, 1024))),
        (["success 30000 60 0"], Cache(success=Share(60, 0, 29952))),
        (["denial 9984 10"], Cache(denial=Share(10))),
        (["success 9984 60", "success 2048"], Cache(success=Share(60, 5, 2048))),
        (["prefetch 10"], Cache(prefetch=Prefetch(10))),
        (["prefetch 10 90s 20%"], Cache(prefetch=Prefetch(10, 90.0, 20))),
        (["prefetch 0"], Cache()),
        (["servfail 0"], Cache(servfail=0)),
        (["servfail 5m"], Cache(servfail=300)),
        (["servfail 1500ms"], Cache(servfail=1)),
        (["keepttl"], Cache(keepttl=True)),
        (["push"], Cache(push=10_000)),
        (["push 500"], Cache(push=500)),
        (["push", "push 0"], Cache()),
        (["disable success"], Cache(success=Share(3600, disabled=(ROOT,)))),
        (
            ["disable success example", "disable denial test example"],
            Cache(success=Share(3600, disabled=(EXAMPLE,)), denial=Share(1800, disabled=(TEST, EXAMPLE))),
        ),
    ],
)
def test_options(lines: list[str], expected: Cache) -> None:
    assert options(*lines) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("serve_stale", ServeStale(3600.0, False, 1.8, 30, 30.0)),
        ("serve_stale 24h", ServeStale(86_400.0)),
        ("serve_stale 1h immediate", ServeStale()),
        ("serve_stale 1h IMMEDIATE 5s 0", ServeStale(ttl=5, recheck=0.0)),
        ("serve_stale 1h verify", ServeStale(verify=True)),
        ("serve_stale 1h verify 0", ServeStale(verify=True, verify_timeout=0.0)),
        ("serve_stale 1h verify 100ms 0 5m", ServeStale(3600.0, True, 0.1, 0, 300.0)),
        ("serve_stale 0", None),
    ],
)
def test_serve_stale(line: str, expected: ServeStale | None) -> None:
    assert options(line).serve_stale == expected


def test_the_policy_may_be_before_or_after() -> None:
    preferring = ServeStale(prefer_positive=True)
    assert options("serve_stale", "serve_stale_policy prefer_positive").serve_stale == preferring
    assert options("serve_stale_policy Prefer_Positive", "serve_stale").serve_stale == preferring


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("cache 0", "'cache' has '0', expected a whole number from 1 to 2147483647"),
        ("cache -5", "'cache' has '-5', expected a whole number from 1 to 2147483647"),
        ("cache quic://x", "CoreDNS has the transport 'quic://', topodns does not"),
        ("cache { \n\nsucess 5\n}", "unknown option 'sucess' of 'cache', did you mean 'success'?"),
    ],
)
def test_a_problem_of_the_line_is_reported(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        parsed(line)
    assert error.value.problem == problem


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("success", "'success' has no argument, expected a capacity, and perhaps the longest and the shortest TTL"),
        ("denial many", "'denial' has 'many', expected a whole number from 0 to 2147483647"),
        ("denial 5000 0", "'denial' has '0', expected a whole number from 1 to 2147483647"),
        ("denial 5000 5 -1", "'denial' has '-1', expected a whole number from 0 to 2147483647"),
        ("prefetch", "'prefetch' has no argument, expected an amount, and perhaps a duration and a percentage"),
        ("prefetch 1 1m 10", "'prefetch' has '10', expected a percentage such as 10%"),
        ("prefetch 1 1m 5%", "'prefetch' has '5', expected a whole number from 10 to 90"),
        ("prefetch 1 soon", "'prefetch' has 'soon', expected a duration such as 5s, 1m30s or 500ms"),
        ("serve_stale 1h later", "'serve_stale' has 'later', expected immediate or verify"),
        ("serve_stale 1h immediate 1500ms", "'serve_stale' has the TTL '1500ms', expected whole seconds"),
        ("serve_stale 1h immediate 30s 6m", "'serve_stale' has '6m', expected at most 5m"),
        (
            "serve_stale 1h immediate 1s 1s 1s",
            "'serve_stale' has the arguments '1h immediate 1s 1s 1s', expected at most 2 durations after the "
            "refresh mode",
        ),
        ("serve_stale_policy newest", "'serve_stale_policy' has 'newest', expected prefer_positive"),
        ("serve_stale_policy prefer_positive", "found 'serve_stale_policy' without 'serve_stale', expected both"),
        ("servfail 301s", "'servfail' has '301s', expected at most 5m"),
        ("servfail", "'servfail' has no argument, expected a duration"),
        ("disable", "'disable' has no argument, expected success or denial, and perhaps zones"),
        ("disable all", "'disable' has the arguments 'all', expected success or denial, and perhaps zones"),
        ("keepttl yes", "'keepttl' has the arguments 'yes', expected none"),
        ("push many", "'push' has 'many', expected a whole number from 0 to 50000"),
        ("push 50001", "'push' has '50001', expected a whole number from 0 to 50000"),
        ("push 1 2", "'push' has the arguments '1 2', expected the most subscriptions"),
        ("persist", "'persist' has no argument, expected a file, and perhaps 'interval' and a duration"),
        ("persist a b", "'persist' has the arguments 'a b', expected a file, and perhaps 'interval' and a duration"),
        (
            "persist a interval",
            "'persist' has the arguments 'a interval', expected a file, and perhaps 'interval' and a duration",
        ),
        ("persist a interval 5", "'persist' has '5', expected a duration such as 5s, 1m30s or 500ms"),
        ("persist a interval 999ms", "'persist' has '999ms', expected at least 1s"),
        ('persist ""', "'persist' has an empty word, expected a path"),
        ("persist a", "found 'persist' without 'serve_stale', expected both"),
    ],
)
def test_a_problem_of_an_option_is_reported(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        options(line)
    assert (error.value.line, error.value.problem) == (3, problem)


def test_the_policy_may_be_written_only_once() -> None:
    with pytest.raises(ConfigError, match="found 'serve_stale_policy' again, first at Corefile:4"):
        options("serve_stale", *["serve_stale_policy prefer_positive"] * 2)


def test_serve_stale_off_is_off_whatever_came_before() -> None:
    assert options("serve_stale off").serve_stale is None
    assert options("serve_stale 1h", "serve_stale off").serve_stale is None
    assert options("serve_stale off", "serve_stale 1h").serve_stale == ServeStale()


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("serve_stale off 1h", "'serve_stale' has 'off', expected a duration such as 5s, 1m30s or 500ms"),
        ("serve_stale no", "'serve_stale' has 'no', expected a duration such as 5s, 1m30s or 500ms"),
    ],
)
def test_a_word_similar_to_off_is_refused_as_no_duration(line: str, problem: str) -> None:
    with pytest.raises(ConfigError) as error:
        options(line)
    assert error.value.problem == problem


@pytest.mark.parametrize(("word", "option"), [("push", "push"), ("persist", "serve_stale\npersist a")])
def test_push_and_persist_are_for_a_block_that_forwards(word: str, option: str) -> None:
    assert block_problem(f"cache {{\n{option}\n}}\nwhoami") == (
        f"Corefile:2: found '{word}' in a server block without 'forward', expected both: only answers of upstreams are "
        "cached"
    )


def persisted(*lines: str) -> Persist | None:
    return options(*lines).persist


def test_a_file_is_relative_to_the_corefile_and_written_each_half_minute_unless_said_otherwise() -> None:
    for lines in (["serve_stale", "persist answers"], ["persist answers", "serve_stale"]):
        found = persisted(*lines)
        assert found is not None
        assert (found.path, found.interval, found.option.place) == (
            "/etc/dns/answers", 30.0, f"Corefile:{3 + lines.index('persist answers')}"
        )  # fmt: skip
    found = persisted("serve_stale", "persist /var/lib/dns/answers interval 2m")
    assert found is not None
    assert (found.path, found.interval) == ("/var/lib/dns/answers", 120.0)


@pytest.mark.parametrize("stale", ["serve_stale off", "serve_stale 0"])
def test_a_file_of_stale_answers_is_refused_where_none_are_served(stale: str) -> None:
    with pytest.raises(ConfigError, match="Corefile:4: found 'persist' without 'serve_stale', expected both"):
        options(stale, "persist a")


def test_two_files_in_one_cache_are_refused() -> None:
    with pytest.raises(ConfigError, match="found 'persist' again, first at Corefile:4"):
        options("serve_stale", "persist a", "persist b")


def test_a_node_cache_serves_stale_answers_unless_they_are_off() -> None:
    (block,) = parse_blocks(tokenize("block {\ncache {\npersist a\n}\n}", "Corefile"))
    settings = parse_cache(block.directives[0], Context(BLOCK, cache=NODE_CACHE))
    assert settings.persist is not None


def test_two_caches_do_not_write_one_file(tmp_path: Path) -> None:
    text = "{} {{\n cache {{\n  serve_stale\n  persist {}\n }}\n forward . 192.0.2.1\n}}\n"
    (tmp_path / "link").symlink_to("answers")
    found = problem(
        "".join(text.format(*each) for each in (("a.", "answers"), ("b.", "other"), ("c.", "link"))), str(tmp_path)
    )
    again = f"found the file of 'persist' again, first at {tmp_path}/Corefile:4, expected one of its own"
    assert found == f"{tmp_path}/Corefile:18: {again}"


def persistence(lines: str, of: Process | None = None) -> Persistence:
    (work,) = set_up(only_block(lines), of).work
    assert isinstance(work, Persistence)
    return work


def test_a_file_is_that_of_a_block_its_view_its_zones_and_the_node() -> None:
    rest = "persist a\nserve_stale\n}\nforward . 192.0.2.1"
    assert persistence(f"cache {{\n{rest}").owner == (".:53", "", ".", "", "", "")
    node = replace(process(), identity=Identity("node-1", frozenset()))
    inside = persistence(f"view inside {{\nexpr true\n}}\ncache a. b. {{\ndisable denial c.\n{rest}", node)
    assert inside.owner == (".:53", "inside", "a.,b.", "node-1", "", "c.")


async def test_a_worker_of_multisocket_leaves_the_writing_to_the_first_process() -> None:
    worker = replace(process(), is_worker=True)
    await persistence("cache {\npersist a\nserve_stale\n}\nforward . 192.0.2.1", worker).run()  # it ends at once


@pytest.mark.parametrize(
    ("lines", "pushes"),
    [
        ("cache {\npush\n}\nforward . 192.0.2.1", True),
        ("cache {\npush 0\n}\nforward . 192.0.2.1", False),
        ("cache\nforward . 192.0.2.1", False),
        ("cache {\npush\n}\nforward a. 192.0.2.1\nforward b. 192.0.2.2", False),
    ],
)
def test_the_cache_of_a_block_subscribes_if_it_has_push_and_one_forward(
    lines: str, pushes: bool, caplog: pytest.LogCaptureFixture
) -> None:
    (cache,) = set_up(only_block(lines)).provided(ResponseCache)
    assert (cache.push is not None) is pushes
    assert caplog.messages == (
        ["plugin/cache: push is off in a server block with 2 'forward', expected one"] if "forward b." in lines else []
    )


@pytest.mark.parametrize(("address", "sent"), [("192.0.2.1", (Tlv(DsoType.NODE_NAME, b"node-a"),)), ("192.0.2.2", ())])
def test_subscriptions_have_the_node_s_name_where_queries_have_it(address: str, sent: tuple[Tlv, ...]) -> None:
    running = replace(process(), identity=Identity("node-a", frozenset({"192.0.2.1"})))
    (cache,) = set_up(only_block(f"cache {{\npush\n}}\nforward . {address}"), running).provided(ResponseCache)
    assert cache.push is not None
    assert cache.push.additional == sent


@pytest.mark.parametrize(
    ("forwards", "names"),
    [
        ("forward . 192.0.2.1", True),
        ("forward . 192.0.2.2", False),
        ("forward a.example 192.0.2.2\nforward . 192.0.2.1", False),  # the other upstream would learn the clients
    ],
)
def test_clients_are_named_to_the_cluster_dns_alone(forwards: str, names: bool) -> None:
    running = replace(process(), identity=Identity("node-a", frozenset({"192.0.2.1"})))
    (cache,) = set_up(only_block(f"cache\n{forwards}"), running).provided(ResponseCache)
    assert (cache.naming is not None) is names


LOCAL = """
cache 30
hosts {
    192.0.2.1 www.example
    fallthrough
}
template IN A example.org {
    answer "{{ .Name }} 7200 IN A 192.0.2.2"
}
"""


@pytest.mark.parametrize(("name", "ttl"), [("www.example", 3600), ("www.example.org", 7200)])
def test_ttls_of_hosts_and_templates_are_their_own(name: str, ttl: int) -> None:
    chain = chain_of(only_block(LOCAL))
    for _ in range(2):
        resolution = chain.resolve(ask(name), client())
        assert isinstance(resolution, Resolution)
        assert [rrset.ttl for rrset in resolution.response.answer] == [ttl]


@pytest.mark.parametrize(
    ("change", "flags", "asked"),
    [("set", Flag.RD, 1), ("set", 0, 1), ("clear", Flag.RD, 2), ("clear", 0, 2)],
)
def test_with_header_the_rd_bit_of_the_corefile_decides_what_is_cached(change: str, flags: int, asked: int) -> None:
    scene = ForwardScene(whatever)
    block = only_block(f"header {{\nquery {change} rd\n}}\ncache\nforward . 192.0.2.1")
    chain = chain_of(block, {"forward": (ChainPart(step=scene.forwarding),)})
    answers = list[Resolution]()
    for _ in range(2):
        pursue(settled(chain.resolve(ask("www.example", flags=flags), client())), answers.append)
    assert [len(each.response.answer) for each in answers] == [1, 1]
    assert scene.asked == [asked]
