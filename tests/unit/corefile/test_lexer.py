"""Cutting a Corefile into tokens."""

import pytest

from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import MAX_WORD, expand_environment, tokenize


def texts(text: str) -> list[str]:
    return [token.text for token in tokenize(text, "Corefile")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("a  b\tc\r\nd", ["a", "b", "c", "d"], id="whitespace parts words"),
        pytest.param("a # \udcfc\n\x00# \ufeff \x07\x00", ["a", "\x00"], id="any octets may be in a comment"),
        pytest.param("a # b {\nc", ["a", "c"], id="a comment ends with its line"),
        pytest.param("a#b\nc", ["a", "c"], id="a comment may start inside a word"),
        pytest.param('"a b" c', ["a b", "c"], id="quotes keep a word together"),
        pytest.param('"a # b"', ["a # b"], id="no comment inside quotes"),
        pytest.param(r'"a \"b\" c"', ['a "b" c'], id="a quote is escaped with a backslash"),
        pytest.param(r'"\d+\\ \n"', [r"\d+\\ \n"], id="nothing else is escaped"),
        pytest.param('a"b c"', ['a"b', 'c"'], id="a quote inside a word is itself"),
        pytest.param('"a"b', ["a", "b"], id="a closing quote ends the word"),
        pytest.param('""', [""], id="an empty word"),
        pytest.param("`a b`", ["`a", "b`"], id="backticks mean nothing"),
        pytest.param("a{ {b} {", ["a{", "{b}", "{"], id="braces inside words are letters"),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert texts(text) == expected


def test_a_token_knows_its_line_and_whether_it_is_the_first_there() -> None:
    text = 'a b\n# comment\n"c\nd" e\nf { g\n}'
    found = [(token.text, token.line, token.first) for token in tokenize(text, "Corefile")]
    assert found == [
        ("a", 1, True),
        ("b", 1, False),
        ("c\nd", 3, True),
        ("e", 4, False),
        ("f", 5, True),
        ("{", 5, False),
        ("g", 5, True),
        ("}", 6, True),
    ]


def test_only_an_unquoted_lone_brace_is_a_brace() -> None:
    assert [token.brace for token in tokenize('{ } "{" "}" {}', "Corefile")] == [True, True, False, False, False]


def test_a_quote_that_is_never_closed_is_refused_where_it_opens() -> None:
    with pytest.raises(ConfigError, match=r"^Corefile:2: found a double quote that is never closed, expected another"):
        texts('a\n"b\nc')


@pytest.mark.parametrize("word", ["a" * (MAX_WORD + 1), f'"{"a" * (MAX_WORD - 1)}"'])
def test_a_word_beyond_the_limit_is_refused_where_it_is(word: str) -> None:
    """To look for what may be meant by a word, or for a name in it, takes time that grows with its square."""
    found = f"^Corefile:2: found a word of {MAX_WORD + 1} characters, expected at most {MAX_WORD}$"
    with pytest.raises(ConfigError, match=found):
        texts(f"a\n{word} b")


def test_a_word_at_the_limit_is_read() -> None:
    assert texts("a" * MAX_WORD) == ["a" * MAX_WORD]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{$NODE}", "worker-1"),
        ("{%NODE%}", "worker-1"),
        ("a-{$NODE}-{%PORT%}", "a-worker-1-5300"),
        ("{$UNSET}", ""),
        ("{$LOOP}", "{$LOOP}"),
        ("{$}", "{$}"),
        ("{$NODE", "{$NODE"),
        ("{NODE}", "{NODE}"),
        ("$NODE", "$NODE"),
    ],
)
def test_environment(text: str, expected: str) -> None:
    assert expand_environment(text, {"NODE": "worker-1", "PORT": "5300", "LOOP": "{$LOOP}"}) == expected
