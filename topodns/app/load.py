"""Settings of a parsed Corefile: each directive by its own parser, then the rules between directives and blocks."""

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, Final

from topodns.corefile.errors import ConfigError, may_show_key, shown_word, unshown
from topodns.corefile.files import load_corefile
from topodns.corefile.imports import Importer
from topodns.corefile.lexer import Token
from topodns.corefile.parser import CorefileBlock, Directive, parse_blocks
from topodns.corefile.zones import BlockKey, parse_keys
from topodns.dns.name import name_text
from topodns.plugins.block import ExpandedCorefile, ServerBlock, Settings
from topodns.plugins.compatibility import is_known, unknown_problem
from topodns.plugins.context import Context
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load


def build_block(block: CorefileBlock, keys: Iterable[BlockKey], context: Context) -> ServerBlock:
    """The settings of one block. Raises ConfigError for the first wrong directive."""
    first: dict[str, Directive] = {}
    values: dict[str, Any] = {}
    for directive in block.directives:
        value = _value(directive, first, context)
        values[directive.name] = values[directive.name] + value if directive.name in first else value
        first.setdefault(directive.name, directive)
    _check_companions(first, values)
    return ServerBlock(tuple(keys), block.file, block.line, {name: values[name] for name in ORDER if name in first})


def _value(directive: Directive, first: Mapping[str, Directive], context: Context) -> Any:
    if directive.name not in ORDER:
        raise directive.error(unknown_problem(directive))
    plugin = load(directive.name)
    if not plugin.adds_up and (earlier := first.get(directive.name)) is not None:
        raise directive.error(f"found '{directive.name}' again, first at {earlier.file}:{earlier.line}")
    return plugin.parse(directive, context)


def _check_companions(directives: Mapping[str, Directive], values: Mapping[str, Any]) -> None:
    """Raise ConfigError for a directive without another that it requires in its block, or that its `check` refuses."""
    for name, directive in directives.items():
        plugin = load(name)
        for required in plugin.requires:
            if required not in directives:
                raise directive.error(f"found '{name}' in a server block without '{required}', expected both")
        if plugin.check is not None:
            plugin.check(directive, values[name], directives.keys())


def check_overlaps(served: Iterable[tuple[Token, BlockKey, ServerBlock]]) -> None:
    """Refuse two keys of the same zone and port, unless `bind` or `view` separates them.

    Raises ConfigError at the later key.
    """
    by_key: dict[BlockKey, list[tuple[Token, ServerBlock]]] = {}
    for token, key, block in served:
        by_key.setdefault(key, []).append((token, block))
    for key, users in by_key.items():
        for (earlier, one), (later, other) in combinations(users, 2):
            if _overlap(one, other):
                hidden = later.imported and not may_show_key(later.text)
                found = unshown(later.text) if hidden else f"{name_text(key.origin)}:{key.port}"
                raise later.error(f"found {found} again, first at {earlier.file}:{earlier.line}")


def _overlap(one: ServerBlock, other: ServerBlock) -> bool:
    """Whether `other` must not follow `one` of the same zone and port. A block without `bind` has every address.

    A view in either separates them, with one exception, as in CoreDNS: if only `other` has a view, both must have
    `bind`, or neither. Without views, disjoint addresses of `bind` separate them. A key twice in one block overlaps.
    """
    if one is other:
        return True
    if "view" in one.settings:
        return False
    if "view" in other.settings:
        return ("bind" in one.settings) != ("bind" in other.settings)
    if "bind" not in one.settings or "bind" not in other.settings:
        return True
    return not set(one.bound_hosts).isdisjoint(other.bound_hosts)


Warn = Callable[[str], object]
"""Takes a log line about a valid Corefile that may not have the intended meaning."""

_HOST: Final = Context(())
_NO_BLOCK: Final = "found no server block, expected at least one: a line '. {', a line 'whoami' and a line '}'"


DEFAULT_COREFILE: Final = ". {\n    whoami\n    log\n}\n"  # CoreDNS's default without a file


def load_chosen(path: str, default_port: int, stdin: str | None, warn: Warn = str) -> Settings:
    """The settings of the Corefile that the command line selects. Raises ConfigError.

    In order: `stdin`, the text of standard input (None: not selected); the file at `path` ("": no `-conf`); ./Corefile;
    without such a file, DEFAULT_COREFILE.
    """
    environment = os.environ
    if stdin is not None:
        return settings_from_text(stdin, "stdin", default_port, environment, warn)
    if not path and not os.path.exists("Corefile"):
        return settings_from_text(DEFAULT_COREFILE, "built-in Corefile", default_port, environment, warn)
    return load_settings(path or "Corefile", default_port, environment, warn)


def load_settings(path: str, default_port: int, environment: Mapping[str, str], warn: Warn = str) -> Settings:
    """The settings of the Corefile at `path`. Raises ConfigError."""
    return settings_from_text(load_corefile(path), path, default_port, environment, warn)


def settings_from_text(
    text: str,
    file: str,
    default_port: int,
    environment: Mapping[str, str],
    warn: Warn = str,
    host: Context = _HOST,
) -> Settings:
    """The settings of the Corefile `text`. `file` is its name in messages; imports and paths are relative to it.

    `default_port` is that of keys without one; `environment` has the values of `{$NAME}`; `host` has the interfaces and
    the defaults of the directive `cache`. Raises ConfigError.
    """
    importer = Importer(environment)
    try:
        tokens = tuple(importer.read(text, file))
        expanded = ExpandedCorefile(
            tokens=tokens,
            file=file,
            default_port=default_port,
            digest=importer.digest,
            files=tuple(importer.files),
            cache=host.cache,
        )
        settings = settings_from_tokens(expanded, replace(host, warn=warn))
    except ConfigError as problem:
        raise importer.explained(problem) from None
    _warn_of(importer, warn)
    return settings


def _warn_of(importer: Importer, warn: Warn) -> None:
    for pattern in importer.unmatched:  # in CoreDNS's words
        warn(f"No files matching import glob pattern: {pattern.text} ({pattern.file}:{pattern.line})")
    for (file, line), names in importer.unset.items():
        for name in names:
            warn(f"The environment variable {shown_word(name)} is not set, so it is empty ({file}:{line})")


def settings_from_tokens(expanded: ExpandedCorefile, host: Context = _HOST) -> Settings:
    """The settings of a Corefile whose imports are expanded. Raises ConfigError."""
    parsed = parse_blocks(expanded.tokens, is_known)
    if not parsed:
        raise ConfigError(expanded.file, 0, _NO_BLOCK)
    served: list[tuple[Token, BlockKey, ServerBlock]] = []
    host = replace(host, directory=os.path.dirname(expanded.file), cache=expanded.cache)
    blocks = tuple(_build(block, host, expanded.default_port, served) for block in parsed)
    check_overlaps(served)
    several = any("multisocket" in block.settings for block in blocks)
    return Settings(blocks, expanded.digest, expanded.files, expanded if several else None)


def _build(
    block: CorefileBlock,
    host: Context,
    default_port: int,
    served: list[tuple[Token, BlockKey, ServerBlock]],
) -> ServerBlock:
    """The settings of one block; its keys are added to `served`."""
    keys = parse_keys(block.keys, default_port)
    origins = tuple(dict.fromkeys(key.origin for _, key in keys))
    settings = build_block(block, (key for _, key in keys), replace(host, origins=origins))
    served.extend((token, key, settings) for token, key in keys)
    return settings
