"""The command line syntax of Go's package flag."""

import pytest

from topodns.nodecache.go_flags import BOOLEAN, GoFlag, ParsedFlags, WrongUsage, read_flags, usage_text

KNOWN = {
    flag.name: flag
    for flag in (GoFlag("conf", "FILE", "a file", "/etc/x"), GoFlag("quiet", BOOLEAN, "say less", "false"))
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ParsedFlags()),
        ("-conf a", ParsedFlags({"conf": "a"})),
        ("--conf a", ParsedFlags({"conf": "a"})),
        ("-conf=a", ParsedFlags({"conf": "a"})),
        ("--conf=a=b", ParsedFlags({"conf": "a=b"})),
        ("-conf=", ParsedFlags({"conf": ""})),
        ("-conf -quiet", ParsedFlags({"conf": "-quiet"})),
        ("-conf a -conf b", ParsedFlags({"conf": "b"})),
        ("-quiet", ParsedFlags(booleans={"quiet": True})),
        ("-quiet=F -conf a", ParsedFlags({"conf": "a"}, {"quiet": False})),
        ("-quiet -quiet=false", ParsedFlags(booleans={"quiet": False})),
        ("-quiet true -conf a", ParsedFlags(booleans={"quiet": True}, rest=("true", "-conf", "a"))),
        ("-quiet -- -conf a", ParsedFlags(booleans={"quiet": True}, rest=("-conf", "a"))),
        ("- -quiet", ParsedFlags(rest=("-", "-quiet"))),
    ],
)
def test_a_command_line_is_read_as_go_reads_it(line: str, expected: ParsedFlags) -> None:
    assert read_flags(line.split(), KNOWN) == expected


@pytest.mark.parametrize("text", ["1", "t", "T", "true", "True", "TRUE"])
def test_all_of_go_s_ways_to_write_true(text: str) -> None:
    assert read_flags([f"-quiet={text}"], KNOWN).booleans == {"quiet": True}


@pytest.mark.parametrize("text", ["0", "f", "F", "false", "False", "FALSE"])
def test_all_of_go_s_ways_to_write_false(text: str) -> None:
    assert read_flags([f"-quiet={text}"], KNOWN).booleans == {"quiet": False}


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("-konf a", "flag provided but not defined: '-konf', did you mean 'conf'?"),
        ("-x", "flag provided but not defined: '-x', see -help"),
        ("-conf", "flag needs an argument: -conf"),
        ("---conf a", "bad flag syntax: '---conf', expected -NAME, -NAME VALUE or -NAME=VALUE"),
        ("-=a", "bad flag syntax: '-=a', expected -NAME, -NAME VALUE or -NAME=VALUE"),
        ("-quiet=yes", "'-quiet' has 'yes', expected true or false"),
        ("-quiet=", "'-quiet' has an empty word, expected true or false"),
        ("-\x1b[2J", "flag provided but not defined: '-\\x1b[2J', see -help"),
    ],
)
def test_a_flag_that_go_refuses_with_status_2_is_wrong_usage(line: str, problem: str) -> None:
    with pytest.raises(WrongUsage) as caught:
        read_flags(line.split(), KNOWN)
    assert str(caught.value) == problem


def test_the_usage_shows_each_flag_with_its_meaning_and_default() -> None:
    assert usage_text("program", "Does it.", KNOWN.values()).splitlines() == [
        *("Usage of program:", "Does it.", ""),
        *("  -conf FILE", "    \ta file (default /etc/x)"),
        *("  -quiet", "    \tsay less (default false)"),
    ]
