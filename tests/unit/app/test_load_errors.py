"""All errors of a Corefile at once, and none that only follows from another."""

from pathlib import Path

import pytest

from tests.support.corefile_settings import problem
from topodns.app.load import settings_from_text
from topodns.corefile.errors import MAX_ERRORS, ConfigError, Problems

SEVERAL = """.:53 {
    health{
        lameduck 5s
    }
    loop;
    kubernets cluster.local {
        pods insecure
    }
    topology
    forward . 192.0.2.1 {
        max_fail 2
        expire 1x
        policy sequntial
    }
    cache {
        prefetch x
    }
    bufsize 1
    import nosuch
}
a.org, {
    errors
    errors
}
b.org {
    whoami
    log . {
        class all
}
"""


def test_each_line_with_an_error_is_named() -> None:
    assert problem(SEVERAL).splitlines() == [
        f"Corefile:{line}"
        for line in (
            "2: found 'health{', expected a space before its '{'",
            "5: unknown directive 'loop;', did you mean 'loop'?",
            "6: unknown directive 'kubernets', did you mean 'kubernetes'?",
            "11: unknown option 'max_fail' of 'forward', did you mean 'max_fails'?",
            "12: 'expire' has '1x', expected a duration such as 5s, 1m30s or 500ms",
            "13: 'policy' has 'sequntial', did you mean 'sequential'?",
            "16: 'prefetch' has 'x', expected a whole number from 0 to 2147483647",
            "18: 'bufsize' has '1', expected a whole number from 512 to 4096",
            "19: cannot import 'nosuch': no such file and no snippet of this name above",
            "21: found a comma, expected another zone after it",
            "23: found 'errors' again, first at Corefile:22",
            "29: found '}', expected another '}' before this one to end 'log' of line 27",
        )
    ]


FOLLOWING = [
    ("the directive that another requires is misspelt", ". {\nkubernets\ntopology\n}", [2]),
    ("the import that may have had it fails", ". {\nimport a\ntopology\n}", [2]),
    ("the other one is there, and wrong", ". {\nkubernetes {\nx\n}\ntopology\n}", [3]),
    ("two options of which one needs the other", ". {\nkubernetes {\nendpoint x\ntls a b c\n}\n}", [3, 4]),
    ("a directive twice, the second wrong", ". {\nbufsize 1232\nbufsize 1\n}", [3]),
    ("a block's address is wrong", ". {\nbind nowhere\n}\n. {\nbind 127.0.0.2\n}", [2]),
    ("a key twice", ". {\nbufsize 1\n}\n. {\nwhoamy\n}\n.:53 {\n}", [2, 5, 7]),
    ("a key that is none", "a..b {\nwhoamy\n}", [1, 2]),
    ("a directive in the body of another", ". {\nhealth {\nerrors\nlog\nready\n}\n}", [3]),
    ("a quote without its end", '. {\nnsid "a\nwhoamy\n}', [2, 3]),
    ("an argument that an import lacks", "(s) {\nforward . {args[0]}\nwhoamy\n}\n. {\nimport s\n}", [2, 3]),
    ("a brace on a line of its own", ". {\nhealth\n{\nx\n}\nwhoamy\n}", [3, 4, 6]),
]


@pytest.mark.parametrize(("text", "lines"), [case[1:] for case in FOLLOWING], ids=[case[0] for case in FOLLOWING])
def test_what_follows_from_an_error_is_none(text: str, lines: list[int]) -> None:
    assert [int(line.split(":")[1]) for line in problem(text).splitlines()] == lines


def test_an_imported_file_has_its_errors_listed_too(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("whoamy\nbufsize 1\n")
    found = problem(". {\nimport one\nloop x\n}\n", str(tmp_path))
    assert [line.split(": ")[0] for line in found.splitlines()] == [
        f"{tmp_path}/Corefile:3",
        f"{tmp_path}/one:1",
        f"{tmp_path}/one:2",
    ]


def test_a_file_that_is_no_corefile_has_its_first_errors_listed() -> None:
    found = problem(". {\n" + "x\n" * 10_000 + "}\n").splitlines()
    assert found[-1] == f"Corefile: only the first {MAX_ERRORS} errors are listed"
    assert len(found) == MAX_ERRORS + 1


def test_a_key_of_many_blocks_is_one_error_for_each_after_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not one for each pair: a thousand blocks would take seconds."""
    noted: list[ConfigError] = []
    monkeypatch.setattr(Problems, "note", lambda _, error: noted.append(error))
    settings_from_text("a.org {\n}\n" * 5, "Corefile", 53, {})
    assert [str(error) for error in noted] == [
        f"Corefile:{line}: found a.org.:53 again, first at Corefile:1" for line in (3, 5, 7, 9)
    ]
