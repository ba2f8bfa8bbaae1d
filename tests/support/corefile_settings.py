"""Corefile text to its settings or to its one problem. The file is called Corefile."""

import os
from collections.abc import Mapping

from topodns.app.load import settings_from_text
from topodns.corefile.errors import ConfigError
from topodns.corefile.lexer import tokenize
from topodns.corefile.parser import Directive, parse_blocks
from topodns.plugins.block import ServerBlock, Settings

_NO_ENVIRONMENT: Mapping[str, str] = {}


def settings(text: str, directory: str = "", environment: Mapping[str, str] = _NO_ENVIRONMENT) -> Settings:
    """The settings of a Corefile in `directory`, with 53 as the default port."""
    return settings_from_text(text, os.path.join(directory, "Corefile"), 53, environment)


def only_block(lines: str, directory: str = "") -> ServerBlock:
    """The settings of a server block for the root; `lines` start on line 2."""
    return settings(f". {{\n{lines}\n}}\n", directory).blocks[0]


def only_directive(text: str) -> Directive:
    """The directive of a server block as it is before any plugin reads it; `text` starts on line 1."""
    (directive,) = parse_blocks(tokenize(f". {{ {text}\n}}", "Corefile"))[0].directives
    return directive


def problem(text: str, directory: str = "", environment: Mapping[str, str] = _NO_ENVIRONMENT) -> str:
    """The problem of this text, as the operator reads it."""
    try:
        settings(text, directory, environment)
    except ConfigError as error:
        return str(error)
    raise AssertionError("nothing is wrong with it")


def block_problem(lines: str, directory: str = "") -> str:
    """The problem of these lines of a server block for the root; they start on line 2."""
    return problem(f". {{\n{lines}\n}}\n", directory)
