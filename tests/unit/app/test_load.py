"""A Corefile as a whole."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.corefile_settings import block_problem, only_block, problem, settings
from topodns.app.load import load_chosen, load_settings, settings_from_tokens
from topodns.corefile.errors import ConfigError
from topodns.corefile.zones import BlockKey
from topodns.dns.name import parse_name
from topodns.plugins.block import ServerBlock
from topodns.plugins.compatibility import COREDNS_ONLY
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load

CLUSTER = """\
.:53 {
    errors
    health {
        lameduck 5s
    }
    ready
    kubernetes cluster.local in-addr.arpa ip6.arpa {
        manifests .
        pods insecure
        fallthrough in-addr.arpa ip6.arpa
        ttl 30
    }
    topology
    prometheus :9153
    reload
    loadbalance
}
"""


def test_the_corefile_of_a_cluster() -> None:
    (block,) = settings(CLUSTER).blocks
    assert block.keys == (BlockKey((), 53),)
    assert block.directives == (
        *("reload", "ready", "health", "prometheus", "errors", "loadbalance", "kubernetes", "topology"),
    )


def test_a_block_without_directives_has_nothing_on() -> None:
    assert only_block("") == ServerBlock((BlockKey((), 53),), "Corefile", 1, {})


def test_the_order_of_directives_does_not_matter() -> None:
    lines = ["errors", "log", "whoami", "reload 10s", "nsid a", "any", "minimal", "bufsize 1000", "acl {\n allow\n}"]
    assert only_block("\n".join(lines)) == only_block("\n".join(reversed(lines)))


def test_the_default_port_is_the_caller_s(tmp_path: Path) -> None:
    corefile = tmp_path / "Corefile"
    corefile.write_bytes(b"\xef\xbb\xbf. {\r\n whoami\r\n}\r\na.org:54 {\r\n}\r\n")
    found = load_settings(str(corefile), 5300, {})
    assert [key.port for block in found.blocks for key in block.keys] == [5300, 54]
    assert [(block.source, block.line) for block in found.blocks] == [(str(corefile), 1), (str(corefile), 4)]
    assert found.files == (str(corefile),)
    assert found.digest == hashlib.sha512(corefile.read_bytes().removeprefix(b"\xef\xbb\xbf")).hexdigest()


def test_relative_paths_start_at_the_corefile_also_from_imported_files(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "k8s").write_text("kubernetes cluster.local {\n manifests state\n}\n")
    kubernetes = settings(". {\n import parts/k8s\n}", str(tmp_path)).blocks[0].settings.get("kubernetes")
    assert kubernetes is not None
    assert kubernetes.manifests == (str(tmp_path / "state"),)


def test_a_corefile_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    with pytest.raises(ConfigError) as caught:
        load_settings(missing, 53, {})
    assert str(caught.value) == f"{missing}: cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("kubernets", "unknown directive 'kubernets', did you mean 'kubernetes'?"),
        ("Errors", "unknown directive 'Errors', did you mean 'errors'?"),
        ("forwad . 1.1.1.1", "unknown directive 'forwad', did you mean 'forward'?"),
        ("xyzzy", "unknown directive 'xyzzy', expected one of those that 'topodns -plugins' lists"),
        (
            "{$UNSET}",
            "found an empty word, expected one of those that 'topodns -plugins' lists; "
            "not set in the environment: 'UNSET'",
        ),
        ("topology", "found 'topology' in a server block without 'kubernetes', expected both"),
        (
            "autopath cluster.local @kubernetes",
            "found 'autopath' in a server block without 'kubernetes' and 'forward', expected one of these",
        ),
        (
            "autopath @kubernetes\nforward . 192.0.2.1",
            "'autopath' has no domain of a cluster, expected one, as in 'autopath cluster.local @kubernetes'",
        ),
        (
            "autopath . in-addr.arpa @kubernetes\nforward . 192.0.2.1",
            "'autopath' has no domain of a cluster, expected one, as in 'autopath cluster.local @kubernetes'",
        ),
    ],
)
def test_a_directive_that_cannot_be_is_refused(lines: str, expected: str) -> None:
    assert block_problem(lines) == f"Corefile:2: {expected}"


@pytest.mark.parametrize(
    ("block", "domains"),
    [
        ("cluster.local {\nautopath @kubernetes\n", "cluster.local"),
        ("cluster.local in-addr.arpa 10.0.0.0/8 {\nautopath @kubernetes\n", "cluster.local"),
        (". {\nautopath cluster.local east.example @kubernetes\n", "cluster.local east.example"),
    ],
)
def test_in_front_of_a_cluster_s_dns_autopath_has_the_domains_of_clusters(block: str, domains: str) -> None:
    autopath = settings(block + "forward . 192.0.2.1\n}").blocks[0].settings.get("autopath")
    assert autopath is not None
    assert autopath.cluster_domains == tuple(map(parse_name, domains.split()))


@pytest.mark.parametrize("name", sorted(COREDNS_ONLY))
def test_a_directive_of_coredns_alone_is_called_that(name: str) -> None:
    said = block_problem(f"{name} a b {{\n c\n}}")
    assert said.startswith(f"Corefile:2: CoreDNS has the directive '{name}', topodns does not: ")


LINES = {
    "kubernetes": "kubernetes a.org {\nmanifests .\n}",
    "topology": "topology",
    "header": "header {\n query set rd\n}",
    "timeouts": "timeouts {\n idle 5s\n}",
    "autopath": "autopath @kubernetes",
    "view": "view inside",
}


@pytest.mark.parametrize("name", sorted(name for name in ORDER if not load(name).adds_up))
def test_a_second_one_in_a_block_is_refused(name: str) -> None:
    line = LINES.get(name, name)
    before = "" if name == "kubernetes" else f"{LINES['kubernetes']}\n"
    problem = block_problem(f"{before}{line}\n{line}")
    assert f"found '{name}' again, first at Corefile:" in problem


def test_several_of_bind_log_and_acl_add_up() -> None:
    block = only_block("bind 127.0.0.1\nbind 127.0.0.2\nlog a.org\nlog b.org\nacl {\n block\n}\nacl {\n allow\n}")
    assert (len(block.settings["bind"]), len(block.settings["log"]), len(block.settings["acl"])) == (
        2,
        2,
        2,
    )


def test_two_blocks_with_one_file_for_snapshots_are_refused() -> None:
    block = "{{\nkubernetes {{\nendpoint http://127.0.0.1:9\nsnapshot {}\n}}\n}}\n"
    with pytest.raises(ConfigError) as refused:
        settings(f"a.org {block.format('/state')}b.org {block.format('/state')}")
    expected = "Corefile:10: found the file of 'snapshot' again, first at Corefile:4, expected one of its own"
    assert str(refused.value) == expected
    assert len(settings(f"a.org {block.format('/state')}b.org {block.format('/other')}").blocks) == 2


def test_one_directive_in_two_blocks_is_no_repetition() -> None:
    assert len(settings("a.org {\n errors\n}\nb.org {\n errors\n}").blocks) == 2


NOWHERE = "/nonexistent"
SYNTAX = ["{", "}", "{\n", "}\n", "\n", '"', "#", ",", ".", "\\", "*", "(a)", "import a", "{args[0]}", "{$A}", "{%A%}"]
VALUES = "a.org:53 10.0.0.0/9 ::/3 127.0.0.1 5s 1 A set aa type net class weighted prefer keys ttl lameduck pods"
WORDS = st.sampled_from([*ORDER, *COREDNS_ONLY, *SYNTAX, *VALUES.split()])


def outcome(text: str) -> str:
    """The problem with this text; empty where it has settings."""
    try:
        settings(text, NOWHERE, {"A": text})
    except ConfigError as error:
        return str(error)
    return ""


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=30).map(" ".join)))
def test_any_text_has_settings_or_a_problem_with_a_place(text: str) -> None:
    assert outcome(text) == "" or outcome(text).startswith(f"{NOWHERE}/Corefile")


@given(st.sampled_from(sorted(ORDER)), st.text(max_size=20), st.text(max_size=20))
def test_any_arguments_and_options_have_settings_or_a_problem_with_a_place(name: str, args: str, body: str) -> None:
    found = outcome(f". {{\n{name} {args} {{\n{body}\n}}\n}}")
    assert found == "" or found.startswith(f"{NOWHERE}/Corefile:")


def test_a_misspelt_option_of_every_directive_with_options_is_refused_at_its_line() -> None:
    assert problem(CLUSTER.replace("lameduck", "lameduk")) == (
        "Corefile:4: unknown option 'lameduk' of 'health', did you mean 'lameduck'?"
    )
    assert problem(CLUSTER.replace("fallthrough", "fallthru")) == (
        "Corefile:10: unknown option 'fallthru' of 'kubernetes', did you mean 'fallthrough'?"
    )


def test_a_corefile_comes_from_stdin_a_file_or_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_chosen("stdin", 1053, "example.org {\nwhoami\n}").blocks[0].keys[0].origin == ("example", "org")
    assert load_chosen("", 1053, None).blocks[0].directives == ("log", "whoami")
    (tmp_path / "Corefile").write_text(". {\nany\n}")
    found = load_chosen("", 1053, None).blocks[0]
    assert (found.directives, found.keys[0].port) == (("any",), 1053)


def test_a_corefile_for_several_processes_can_be_read_again_without_its_files(tmp_path: Path) -> None:
    (tmp_path / "more").write_text("log\n")
    (tmp_path / "Corefile").write_text(".:{$PORT} {\n multisocket 2\n import more\n}\n")
    given = load_settings(str(tmp_path / "Corefile"), 53, {"PORT": "5300"})
    (tmp_path / "more").unlink()
    assert given.expanded is not None
    assert settings_from_tokens(given.expanded) == given


def test_a_corefile_for_one_process_keeps_no_words_in_memory() -> None:
    assert settings(". {\n log\n}\n").expanded is None
