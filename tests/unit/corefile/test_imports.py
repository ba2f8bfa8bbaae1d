"""Snippets and imports."""

import hashlib
from pathlib import Path

import pytest

from tests.support.corefile_settings import problem, settings
from topodns.app.load import settings_from_text
from topodns.plugins.chaos import Chaos


def directives(text: str, directory: str = "") -> tuple[str, ...]:
    return settings(text, directory).blocks[0].directives


def test_a_snippet_is_replaced_by_its_lines() -> None:
    assert directives("(base) {\n errors\n health\n}\n. {\n import base\n whoami\n}") == ("health", "errors", "whoami")


def test_a_snippet_alone_is_no_server_block() -> None:
    assert len(settings("(base) {\n errors\n}\n. {\n}\n").blocks) == 1


def test_a_snippet_may_import_another_and_be_imported_twice() -> None:
    text = "(a) {\n log a.org\n}\n(b) {\n import a\n import a\n}\n. {\n import b\n}"
    assert len(settings(text).blocks[0].settings["log"]) == 2


def test_a_snippet_may_be_imported_inside_a_body() -> None:
    block = settings("(duck) {\n lameduck 7s\n}\n. {\n health {\n  import duck\n }\n whoami\n}").blocks[0]
    assert block.settings.get("health") is not None
    assert (block.settings["health"].lameduck, block.settings["whoami"]) == (7.0, True)


def test_a_snippet_may_have_the_keys_of_a_block() -> None:
    blocks = settings("(site) {\n a.org {\n  whoami\n }\n}\nimport site\n").blocks
    assert [key.origin for key in blocks[0].keys] == [("a", "org")]


@pytest.mark.parametrize("placeholder", ["{args[1]}", "{args.1}"])
def test_arguments_of_an_import_are_put_in(placeholder: str) -> None:
    text = f'(id) {{\n chaos v-{placeholder} "{{args[0]}}"\n}}\n. {{\n import id "Jo Doe" 7\n}}'
    assert settings(text).blocks[0].settings.get("chaos") == Chaos("v-7", ("Jo Doe",))


def test_arguments_reach_an_import_inside() -> None:
    text = "(in) {\n chaos {args[0]}\n}\n(out) {\n import in {args[1]}-x\n}\n. {\n import out a b\n}"
    assert settings(text).blocks[0].settings.get("chaos") == Chaos("b-x")


def test_the_environment_is_put_in_everywhere() -> None:
    text = "(n) {\n nsid {$NODE}\n}\n{$ORIGIN}:{%PORT%} {\n import {$WHAT}\n chaos {args}\n}"
    environment = {"NODE": "worker 1", "ORIGIN": "a.org", "PORT": "54", "WHAT": "n"}
    (block,) = settings(text, environment=environment).blocks
    assert (block.settings.get("nsid"), block.keys[0].origin, block.keys[0].port) == ("worker 1", ("a", "org"), 54)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            ".:{$PORT} {\n whoami\n}",
            "1: found '.:', expected a zone and perhaps a port, such as 'example.org:53' or '.:53'; "
            "not set in the environment: 'PORT'",
        ),
        (
            ". {\n bind {$HOST}{%PART%}{$HOST}\n whoami\n}",
            "2: 'bind' has an empty word, expected an IP address or an interface of this machine; "
            "not set in the environment: 'HOST', 'PART'",
        ),
        (
            ". {\n import {$PART}\n}",
            "2: 'import' has no argument, expected a snippet, a file or a pattern; not set in the environment: 'PART'",
        ),
        (". {\n prometheus {$HOST}:9153\n bnd\n}", "3: unknown directive 'bnd', did you mean 'bind'?"),
    ],
)
def test_an_error_names_the_unset_variables_of_its_line(text: str, expected: str) -> None:
    assert problem(text) == f"Corefile:{expected}"


def test_a_variable_that_is_not_set_is_a_warning_where_the_empty_text_is_valid() -> None:
    warnings: list[str] = []
    text = ". {\n prometheus {$HOST}:9153\n chaos {$VERSION}\n}"
    settings_from_text(text, "Corefile", 53, {"VERSION": ""}, warnings.append)
    assert warnings == ["The environment variable 'HOST' is not set, so it is empty (Corefile:2)"]


def test_a_file_is_found_beside_the_importing_one(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "one.conf").write_text("errors\nimport two.conf\n")
    (tmp_path / "inner" / "two.conf").write_text("health\n")
    found = settings(". {\n import inner/one.conf\n}", str(tmp_path))
    assert found.blocks[0].directives == ("health", "errors")
    assert [Path(file).name for file in found.files] == ["Corefile", "one.conf", "two.conf"]


def test_a_file_takes_arguments_too(tmp_path: Path) -> None:
    (tmp_path / "id.conf").write_text("nsid {args[0]}\n")
    assert settings(". {\n import id.conf a\n}", str(tmp_path)).blocks[0].settings.get("nsid") == "a"


def test_a_file_may_define_snippets(tmp_path: Path) -> None:
    (tmp_path / "snippets").write_text("(base) {\n errors\n}\n")
    assert directives("import snippets\n. {\n import base\n}", str(tmp_path)) == ("errors",)


def test_a_pattern_imports_its_files_by_name(tmp_path: Path) -> None:
    for name, origin in (("b.server", "b.org"), ("a.server", "a.org"), ("c.override", "c.org")):
        (tmp_path / name).write_text(f"{origin} {{\n whoami\n}}\n")
    blocks = settings(". {\n}\nimport *.server\n", str(tmp_path)).blocks
    assert [block.keys[0].origin for block in blocks] == [(), ("a", "org"), ("b", "org")]


def test_a_pattern_matches_names_that_begin_with_a_dot(tmp_path: Path) -> None:
    for name, word in ((".a.override", "errors"), ("b.override", "health"), (".c", "debug"), ("d", "ready")):
        (tmp_path / name).write_text(f"{word}\n")
    text = ". {\n import *.override\n import [.]c\n import ?\n}"
    assert directives(text, str(tmp_path)) == ("debug", "ready", "health", "errors")
    assert [Path(file).name for file in settings(text, str(tmp_path)).files] == [
        *("Corefile", ".a.override", "b.override", ".c", "d")
    ]


def test_a_pattern_reads_each_file_of_a_configmap_s_volume_once(tmp_path: Path) -> None:
    volume = tmp_path / "custom"
    data = volume / "..2026_11_28_01_00_00.1234567890"
    data.mkdir(parents=True)
    (data / "a.override").write_text("errors\n")
    (volume / "..data").symlink_to(data.name)
    (volume / "a.override").symlink_to("..data/a.override")
    for pattern in ("custom/*", "custom/*.override", "*/a.override", "*/*"):
        assert directives(f". {{\n import {pattern}\n}}", str(tmp_path)) == ("errors",)


def test_a_pattern_that_matches_a_directory_is_refused(tmp_path: Path) -> None:
    (tmp_path / "custom" / "more").mkdir(parents=True)
    found = problem(". {\n import custom/*\n}", str(tmp_path))
    assert found == f"{tmp_path}/Corefile:2: cannot import '{tmp_path}/custom/more': Is a directory"


def test_a_pattern_without_matches_is_allowed_and_warned_of_in_coredns_s_words(tmp_path: Path) -> None:
    (tmp_path / "a.server").write_text("import more/*\n")
    text, got = ". {\n import custom/*.override\n whoami\n}\nimport *.server\n", list[str]()
    found = settings_from_text(text, f"{tmp_path}/Corefile", 53, {}, got.append)
    assert found.blocks[0].directives == ("whoami",)
    assert got == [
        f"No files matching import glob pattern: custom/*.override ({tmp_path}/Corefile:2)",
        f"No files matching import glob pattern: more/* ({tmp_path}/a.server:1)",
    ]


def test_a_directory_with_brackets_in_its_name_is_no_pattern(tmp_path: Path) -> None:
    odd = tmp_path / "a[b]"
    odd.mkdir()
    (odd / "x.override").write_text("errors\n")
    assert directives(". {\n import *.override\n}", str(odd)) == ("errors",)


def test_an_error_in_an_imported_file_names_that_file(tmp_path: Path) -> None:
    (tmp_path / "bad.conf").write_text("errors\nhelth\n")
    expected = f"{tmp_path}/bad.conf:2: unknown directive 'helth', did you mean 'health'?"
    assert problem(". {\n import bad.conf\n}", str(tmp_path)) == expected


def test_the_digest_is_that_of_all_text_read(tmp_path: Path) -> None:
    text, inner = ". {\n import inner.conf\n}\n", "errors\n"
    (tmp_path / "inner.conf").write_text(inner)
    assert settings(text, str(tmp_path)).digest == hashlib.sha512((text + inner).encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (". {\n import\n}", "2: 'import' has no argument, expected a snippet, a file or a pattern"),
        (
            ". {\n import nowhere.conf\n}",
            "2: cannot import 'nowhere.conf': no such file and no snippet of this name above",
        ),
        (
            "(common) {\n}\n. {\n import comon\n}",
            "4: cannot import 'comon': no such file, did you mean the snippet 'common'?",
        ),
        (
            ". {\n import later\n}\n(later) {\n}",
            "2: cannot import 'later': no such file and no snippet of this name above",
        ),
        (". {\n import /\n}", "2: cannot import '/': Is a directory"),
        ("() {\n}\n. {\n}", "1: found a snippet without a name, expected one as in '(NAME) {'"),
        ("(a) {\n}\n(a) {\n}", "3: found the snippet 'a' again, first at Corefile:1"),
        ("(a)\n", "1: expected '{' after the snippet's name '(a)'"),
        ("(a) {\n b {\n }\n", "1: expected '}' to end '(a)', found the end of the file"),
        ("(a) {\n import a\n}\n. {\n import a\n}", "2: found an import of 'a' inside itself"),
        ("(a) {\n import {args[0]} {args[0]}\n}\n. {\n import a a\n}", "2: found an import of 'a' inside itself"),
        ("(a) {\n chaos {args[1]}\n}\n. {\n import a x\n}", "2: found {args[1]}, but the import's arguments are 'x'"),
        (". {\n chaos {args[0]}\n}", "2: found {args[0]}, but the import's arguments are none"),
    ],
)
def test_an_import_that_cannot_be_is_refused(text: str, expected: str) -> None:
    assert problem(text) == f"Corefile:{expected}"


def test_files_that_import_each_other_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("import b\n")
    (tmp_path / "b").write_text("import ./a\n")
    expected = f"{tmp_path}/b:1: found an import of '{tmp_path}/./a' inside itself"
    assert problem("import a", str(tmp_path)) == expected


def test_a_file_that_imports_the_corefile_is_refused(tmp_path: Path) -> None:
    (tmp_path / "Corefile").write_text("import Corefile\n")
    assert problem("import Corefile\n", str(tmp_path)) == (
        f"{tmp_path}/Corefile:1: found an import of '{tmp_path}/Corefile' inside itself"
    )


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"# f\xfcr\nerrors \xff\n")
    assert problem("import binary", str(tmp_path)) == (f"{tmp_path}/binary:2: found the octet 0xff, which is no UTF-8")


def test_imports_that_multiply_are_stopped() -> None:
    doubling = "".join(f"(s{n + 1}) {{\n import s{n}\n import s{n}\n}}\n" for n in range(20))
    expected = "found more than 10000 imports"
    assert problem(f"(s0) {{\n}}\n{doubling}. {{\n import s20\n}}").endswith(expected)


def test_imports_that_nest_too_deep_are_stopped() -> None:
    chained = "".join(f"(s{n + 1}) {{\n import s{n}\n}}\n" for n in range(60))
    assert problem(f"(s0) {{\n}}\n{chained}. {{\n import s60\n}}").endswith(
        "found imports inside imports, more than 50 deep"
    )
