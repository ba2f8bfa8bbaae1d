"""`topodns check --from coredns`: the verdicts on the lines of a Corefile."""

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.corefile_settings import block_problem
from tests.support.distribution_corefiles import COREFILES, RESOLV_CONF, ROOT, corefile
from topodns.cli.coredns_check import Migration, examine
from topodns.plugins.compatibility import DirectiveVerdict
from topodns.plugins.order import ORDER


def examined(text: str, directory: str = "") -> Migration:
    return examine(text, f"{directory}/Corefile" if directory else "Corefile", 53, {"PORT": "9153"})


def lines(text: str, directory: str = "") -> list[str]:
    """The findings without the file, up to the verdict."""
    return [
        f"{finding.line}: {finding.subject}: {finding.verdict.value}" for finding in examined(text, directory).findings
    ]


WHOLE = """(watched) {
    errors
    prometheus localhost:{$PORT}
}
example.org:1053 10.0.0.0/8 {
    import watched
    health {
        lameduck 5s
    }
    hosts {
        10.0.0.1 www.example.org
        fallthrough
    }
    rewrite {
        name exact a.example.org www.example.org
    }
    whoami
}
"""


def test_imported_lines_are_reported_at_their_own_line_numbers() -> None:
    assert lines(WHOLE) == [
        "5: block example.org:1053: same",
        "5: block 10.0.0.0/8: same",
        "2: errors: differs",
        "3: prometheus: same",
        "7: health: same",
        "8: health lameduck: same",
        "10: hosts: differs",
        "11: hosts 10.0.0.1: same",
        "12: hosts fallthrough: same",
        "14: rewrite: differs",
        "17: whoami: same",
    ]
    assert examined(WHOLE).possible


CASES = [
    (
        "a directive that is not there, with its options",
        "etcd {\n path x\n}",
        "etcd: not supported, etcd path: not supported",
    ),
    (
        "a directive of topodns, with its options",
        "kubernetes a.org {\n manifests .\n}\ntopology {\n srv_priority\n}",
        "kubernetes: differs, kubernetes manifests: differs, topology: differs, topology srv_priority: differs",
    ),
    ("an external plugin that is known", "fanout . 10.0.0.1", "fanout: not supported"),
    ("a misspelt directive", "whoamy", "whoamy: not supported"),
    ("a directive twice", "whoami\nwhoami", "whoami: same, whoami: refused"),
    ("and its options", "cache\ncache {\n keepttl\n}", "cache: differs, cache: refused, cache keepttl: same"),
    ("directives that add up", "log\nlog", "log: differs, log: differs"),
    ("a wrong argument", "bufsize 1", "bufsize: refused"),
    (
        "one wrong option of two",
        "ready {\n x\n monitor continuously\n}",
        "ready: same, ready x: refused, ready monitor: same",
    ),
    (
        "two of three",
        "cache {\n x\n y\n keepttl\n}",
        "cache: differs, cache x: refused, cache y: refused, cache keepttl: same",
    ),
    ("only wrong ones", "timeouts {\n read 0s\n}", "timeouts: same, timeouts read: refused"),
    ("options of a wrong line", "health x {\n lameduck 5s\n}", "health: refused, health lameduck: same"),
    (
        "a wrong option of a wrong line",
        "forward . dns..net {\n max_fails x\n expire 9s\n}",
        "forward: refused, forward max_fails: refused, forward expire: same",
    ),
    (
        "options that a wrong line may have or not",
        "loadbalance weighted nowhere {\n reload 5s\n}",
        "loadbalance: refused, loadbalance reload: not looked at",
    ),
    (
        "options that do not go together",
        "kubernetes cluster.local {\n namespaces a\n namespace_labels b\n}",
        "kubernetes: refused, kubernetes namespaces: not looked at, kubernetes namespace_labels: not looked at",
    ),
    (
        "an option of old",
        "kubernetes cluster.local {\n upstream\n ttl 30\n}",
        "kubernetes: differs, kubernetes upstream: refused, kubernetes ttl: same",
    ),
    (
        "an option that is not there",
        "prometheus {\n runtime_metrics\n}",
        "prometheus: same, prometheus runtime_metrics: not supported",
    ),
    ("an option that differs", "cache {\n serve_stale\n}", "cache: differs, cache serve_stale: differs"),
    ("an upstream over HTTPS", "forward . https://192.0.2.1", "forward: differs"),
    ("an upstream with a host name", "forward . dns.example.net", "forward: differs"),
    ("a wrong word in the body of a rule", "rewrite {\n name exact\n}", "rewrite: refused"),
    ("what is topodns's own", "kubernetes cluster.local\ntopology", "kubernetes: differs, topology: differs"),
    ("what lacks something beside it", "topology", "topology: differs, : refused"),
    ("a word that would break the line", '"a\nb"', "'a\\nb': not supported"),
]


@pytest.mark.parametrize(("body", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_each_directive_and_option_gets_its_verdict(body: str, expected: str) -> None:
    found = examined(f". {{\n{body}\n}}\n").findings[1:]
    assert ", ".join(f"{finding.subject}: {finding.verdict.value}" for finding in found) == expected


def test_a_refusal_names_the_unset_variables_of_its_line() -> None:
    found = examine(". {\n forward . {$UPSTREAM}\n}", "Corefile", 53, {}).report(readable=True)
    assert "  forward: refused: 'forward' has an empty word, expected " in found
    assert "; not set in the environment: 'UPSTREAM' (Corefile:2)\n" in found


def test_a_refusal_is_the_same_as_of_check_alone() -> None:
    (*_, found) = examined(". {\n    forward . quic://192.0.2.1\n}\n").findings
    assert f"{found.file}:{found.line}: {found.text}" == block_problem("    forward . quic://192.0.2.1")


@pytest.mark.parametrize("around", [". {\n    import one\n}\n", ". {\n    cache {\n        import one\n    }\n}\n"])
def test_a_word_that_is_all_of_an_imported_file_is_not_in_the_report(tmp_path: Path, around: str) -> None:
    """It may be a password, unless CoreDNS has a directive of that name."""
    report = {}
    for text in ("hunter2", "route53"):
        (tmp_path / "one").write_text(text)
        report[text] = examine(around, str(tmp_path / "Corefile"), 53, {}).report(readable=True)
    assert "hunter2" not in report["hunter2"]
    assert "'…' (7 characters, not shown)" in report["hunter2"]
    assert "route53" in report["route53"]


@pytest.mark.parametrize(
    ("around", "subjects"),
    [
        (". {\n import FILE\n}\n", ["'…' (9 characters, not shown)", "'…' (8 characters, not shown)", "fanout"]),
        (
            ". {\n forward . 127.0.0.1 {\n import FILE\n }\n}\n",
            [
                "forward",
                "forward '…' (9 characters, not shown)",
                "forward '…' (8 characters, not shown)",
                "forward fanout",
            ],
        ),
        (
            ". {\n etcd {\n import FILE\n }\n}\n",
            ["etcd", "etcd '…' (9 characters, not shown)", "etcd '…' (8 characters, not shown)", "etcd fanout"],
        ),
        (
            ". {\n loadbalance weighted nowhere {\n import FILE\n }\n}\n",
            [
                "loadbalance",
                "loadbalance '…' (9 characters, not shown)",
                "loadbalance '…' (8 characters, not shown)",
                "loadbalance fanout",
            ],
        ),
        ("import FILE\n", ["block '…' (9 characters, not shown)", "'…' (8 characters, not shown)", "fanout"]),
    ],
)
def test_unknown_words_of_an_imported_file_are_not_in_the_report(
    tmp_path: Path, around: str, subjects: list[str]
) -> None:
    (tmp_path / "lines").write_text("hunter2ab\nMIIEvgIB\nfanout\n")
    found = examine(around.replace("FILE", "lines"), str(tmp_path / "Corefile"), 53, {})
    assert [finding.subject for finding in found.findings if finding.subject != "block ."] == subjects
    assert "hunter2" not in found.report(readable=True)
    assert "MIIE" not in found.report(readable=True)


def test_a_misspelt_directive_comes_with_the_nearest_word() -> None:
    (*_, found) = examined(". {\n    whoamy\n}\n").findings
    assert found.text.endswith("; did you mean 'whoami'?")


KEYS = [
    ("quic://.:853", "1: block quic://.:853: not supported"),
    ("grpc://example.org", "1: block grpc://example.org: not supported"),
    ("example..org", "1: block example..org: refused"),
    (".:99999", "1: block .:99999: refused"),
]


@pytest.mark.parametrize(("key", "expected"), KEYS)
def test_a_key_that_cannot_be_served_does_not_hide_its_block(key: str, expected: str) -> None:
    assert lines(f"{key} {{\n    whoami\n}}\n") == [expected, "2: whoami: same"]


def test_an_import_that_cannot_be_done_does_not_hide_the_rest(tmp_path: Path) -> None:
    (tmp_path / "good.server").write_text("example.org {\n    import nowhere\n    whoami\n}\n")
    text = "import missing.server\nimport *.server\n. {\n    whoami\n}\n"
    assert lines(text, str(tmp_path)) == [
        "1: : refused",
        "2: : refused",
        "1: block example.org: same",
        "3: whoami: same",
        "3: block .: same",
        "4: whoami: same",
    ]


def test_an_import_without_matches_is_reported_and_is_no_problem(tmp_path: Path) -> None:
    text = ". {\n    import custom/*.override\n    whoami\n}\nimport custom/*.server\n"
    found = examined(text, str(tmp_path))
    assert found.possible
    unchecked = [
        f"  import: no file matches custom/*.{name}, so the directives that it is to import were not checked "
        f"({tmp_path}/Corefile:{line})"
        for line, name in ((2, "override"), (5, "server"))
    ]
    assert found.report(readable=True).splitlines() == [
        "not checked:",
        *unchecked,
        "the same as in CoreDNS:",
        f"  block ., whoami ({tmp_path}/Corefile:1, 3)",
        f"{tmp_path}/Corefile: the image can be swapped: 2 same, 2 with a warning",
    ]


def test_each_sentence_is_said_once_with_its_lines_below_a_heading_that_ranks_it() -> None:
    report = examined(
        """. {
    log
    log example.org
    kubernetes cluster.local {
        apiserver_qps 1
        apiserver_burst 1
    }
    fanout . 192.0.2.1
    bufsize 1
}
a.org {
    log
    fanout . 192.0.2.1
}
"""
    ).report(readable=True)
    rate = "Corefile:5, 6"
    assert [line.split(" (")[-1].rstrip(")") if line.startswith("  ") else line for line in report.splitlines()] == [
        "prevents the swap:",
        *("Corefile:8, 13", "Corefile:9"),
        "can change an answer:",
        "Corefile:4",
        "changes bounds or timing:",
        rate,
        "changes no answer, bound or timing:",
        "Corefile:2, 3, 12",
        "the same as in CoreDNS:",
        "Corefile:1, 11",
        "Corefile: not as it is: 2 same, 6 different, 2 not supported, 1 refused",
    ]
    assert "  kubernetes apiserver_qps, kubernetes apiserver_burst: " in report


@pytest.mark.parametrize(
    ("option", "vain"),
    [
        ("disable success cluster.local", True),
        ("disable denial a.cluster.local in-addr.arpa", True),
        ("disable success cluster.local example.org", False),
        ("disable success", False),
        ("prefetch 10", False),
    ],
)
def test_what_is_never_cached_need_not_be_switched_off(option: str, vain: bool) -> None:
    text = f". {{\nkubernetes cluster.local in-addr.arpa\ncache 30 {{\n{option}\n}}\nforward . 192.0.2.1\n}}\n"
    (found,) = [finding for finding in examined(text).findings if finding.line == 4]
    assert (found.text == "no effect: answers of `kubernetes` are never cached") is vain
    assert found.heading == ("changes no answer, bound or timing" if vain else "the same as in CoreDNS")


@pytest.mark.parametrize("text", [". {\n    whoami\n", ". {\n    }\n}\n", '. {\n    nsid "x\n}\n'])
def test_a_fault_of_the_language_is_the_first_finding(text: str) -> None:
    found, *others = examined(text).findings
    assert found.verdict is DirectiveVerdict.REFUSED
    assert all(other.verdict is DirectiveVerdict.SAME for other in others)


def test_a_closing_brace_that_coredns_refuses_is_reported() -> None:
    found = examined(
        ". {\n    health { lameduck 5s }\n    ready {\n        monitor continuously\n    }\n    whoami }\n"
    )
    assert found.possible
    assert [(each.line, each.subject) for each in found.findings if each.verdict is DirectiveVerdict.DIFFERS] == [
        (2, "closing brace"),
        (6, "closing brace"),
    ]


def test_an_empty_corefile_and_two_blocks_for_the_same_names_are_refused() -> None:
    for text in ("", ". {\n    whoami\n}\n. {\n    whoami\n}\n"):
        found = examined(text)
        assert not found.possible
        assert found.findings[-1].verdict is DirectiveVerdict.REFUSED


WORDS = st.sampled_from(
    ["{", "}", "\n", "import", "(x)", '"a b"', "{$PORT}", "10s", "-1", "127.0.0.1", "(", ".", "a..b", "\0", *ORDER]
)


@settings(max_examples=100)
@given(st.lists(WORDS, max_size=12), st.sampled_from(sorted(ORDER)))
def test_whatever_it_is_given_it_reports(words: list[str], name: str) -> None:
    assert (
        examined(f". {{\n{name} {' '.join(words)}\n}}\n")
        .report(readable=True)
        .splitlines()[-1]
        .startswith("Corefile: ")
    )


def test_the_sum_is_in_the_last_line() -> None:
    report = examined(". {\n    whoami\n    errors\n    etcd\n    bufsize 1\n}\n").report(readable=True)
    assert report.splitlines()[-1] == "Corefile: not as it is: 2 same, 1 different, 1 not supported, 1 refused"


@pytest.mark.parametrize("name", COREFILES)
@pytest.mark.parametrize("line", ["loop", "loop\n    topology"], ids=["as it is", "with topology"])
def test_the_corefiles_of_installers_can_be_swapped(name: str, line: str, tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    text = corefile(name, {RESOLV_CONF: str(tmp_path / "resolv.conf"), "    loop\n": f"    {line}\n"})
    assert examined(text, str(tmp_path)).possible


def test_the_guide_shows_the_printed_output(tmp_path: Path) -> None:
    guide = (ROOT / "docs/migrate/from-coredns.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(can change an answer:.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (tmp_path / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    text = corefile("eks", {RESOLV_CONF: str(tmp_path / "resolv.conf")})
    assert [line for line in shown.splitlines() if line not in examined(text).report(readable=True).splitlines()] == []


def test_a_block_that_forwards_to_itself_is_refused() -> None:
    found = examined(".:53 {\n    bind 127.0.0.1\n    forward . 127.0.0.1\n    loop\n}\n")
    assert not found.possible
    assert "which is this server block itself: a loop" in found.report(readable=True)


def test_where_a_file_cannot_be_read_the_report_promises_no_swap() -> None:
    found = examined(". {\n    whoami\n}\n")
    assert found.report(readable=True).splitlines()[-1] == "Corefile: the image can be swapped: 2 same"
    assert found.report(readable=False).splitlines()[-1] == "Corefile: not as it is: 2 same"
