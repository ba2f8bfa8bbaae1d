"""`topodns top`: what it asks of servers, and how it adds their documents."""

import json
from collections.abc import Mapping

import pytest

from topodns.cli import main as cli
from topodns.cli.admin_client import AdminError

Captured = pytest.CaptureFixture[str]

DOCUMENTS: Mapping[str, object] = {
    "a:8181": {
        **{"version": 1, "by": "pod", "minutes": 5, "queries": 100, "sampled": 10, "others": 10},
        "rows": [{"value": "shop/cart", "queries": 60}, {"value": "shop/web", "queries": 30}],
    },
    "b:8181": {
        **{"version": 1, "by": "pod", "minutes": 5, "queries": 50, "sampled": 5, "others": 0},
        "rows": [{"value": "shop/web", "queries": 50}],
    },
    "old:8181": {"rows": []},
}


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, str]]]:
    """The questions to servers, of which those in DOCUMENTS answer."""
    questions: list[tuple[str, str, dict[str, str]]] = []

    def fetch(server: str, path: str, arguments: Mapping[str, str], _timeout: float) -> bytes:
        questions.append((server, path, dict(arguments)))
        if server not in DOCUMENTS:
            raise AdminError(f"no answer from {server}")
        return json.dumps(DOCUMENTS[server]).encode()

    monkeypatch.setattr("topodns.cli.admin_client.fetch", fetch)
    return questions


def test_the_queries_of_several_servers_are_added(asked: list[object], capsys: Captured) -> None:
    assert cli.main(["top", "--by", "pod", "--server", "a:8181", "--server", "b:8181"]) == 0
    assert asked == [("a:8181", "/top", {"by": "pod"}), ("b:8181", "/top", {"by": "pod"})]
    assert capsys.readouterr().out.splitlines() == [
        "about 150 queries in 5 minutes, by a sample of 15",
        "",
        "    QUERIES    SHARE  POD",
        "         80   53.3 %  shop/web",
        "         60   40.0 %  shop/cart",
        "         10    6.7 %  others",
    ]


def test_rows_beyond_the_number_wanted_are_among_the_others(capsys: Captured) -> None:
    assert cli.main(["top", "--by=pod", "--rows=1", "--json", "--server=a:8181"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["others"], found["by"]) == ([{"value": "shop/cart", "queries": 60}], 40, "pod")


def test_the_ready_address_on_loopback_is_asked_by_default(asked: list[object], capsys: Captured) -> None:
    assert cli.main(["top"]) == 2
    assert asked == [("127.0.0.1:8181", "/top", {"by": "client"})]
    assert capsys.readouterr().err == "no answer from 127.0.0.1:8181\n"


def test_a_server_of_another_version_is_named(capsys: Captured) -> None:
    assert cli.main(["top", "--server=old:8181"]) == 2
    assert capsys.readouterr().err == "the server is of another version: its reply has no 'version'\n"


@pytest.mark.parametrize("words", [["--by", "pods"], ["--rows", "0"], ["--rows", "201"], ["--rows", "many"]])
def test_nonsense_is_wrong_usage(words: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["top", *words])
    assert ended.value.code == 2
    assert "topodns top: error: argument" in capsys.readouterr().err
