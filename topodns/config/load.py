"""The way in: a Corefile, from disk or as text, to `Settings`."""

import os
from collections.abc import Callable, Mapping
from typing import Final

from topodns.config.blocks import build_block, check_overlaps
from topodns.config.corefile import Block, parse_blocks
from topodns.config.directives import Context
from topodns.config.errors import ConfigError
from topodns.config.files import load_corefile
from topodns.config.imports import Importer
from topodns.config.keys import parse_keys
from topodns.config.lexer import Token
from topodns.settings.cache import AS_COREDNS, Cache
from topodns.settings.server import BlockKey, ServerBlock, Settings

Warn = Callable[[str], object]
"""Takes a line for the log: something in a good Corefile that may not be what was meant."""

_NO_BLOCK: Final = "found no server block, expected at least one: a line '. {', a line 'whoami' and a line '}'"


def load_settings(path: str, default_port: int, environment: Mapping[str, str], warn: Warn = str) -> Settings:
    """The settings that the Corefile at `path` stands for. Raises ConfigError."""
    return settings_from_text(load_corefile(path), path, default_port, environment, warn)


def settings_from_text(
    text: str,
    file: str,
    default_port: int,
    environment: Mapping[str, str],
    warn: Warn = str,
    cache: Cache = AS_COREDNS,
) -> Settings:
    """The settings that `text` stands for; `file` is its name in messages, and imports and paths are found beside it.

    `default_port` is that of keys without one; `environment` is what `{$NAME}` looks into; `cache` is what a `cache`
    without options means. Raises ConfigError.
    """
    importer = Importer(environment)
    parsed = parse_blocks(importer.read(text, file))
    if not parsed:
        raise ConfigError(file, 0, _NO_BLOCK)
    served: list[tuple[Token, BlockKey, ServerBlock]] = []
    blocks = tuple(_build(block, os.path.dirname(file), default_port, cache, served) for block in parsed)
    check_overlaps(served)
    for pattern in importer.unmatched:  # in CoreDNS's words
        warn(f"No files matching import glob pattern: {pattern.text} ({pattern.file}:{pattern.line})")
    return Settings(blocks, importer.digest, tuple(importer.files))


def _build(
    block: Block, directory: str, default_port: int, cache: Cache, served: list[tuple[Token, BlockKey, ServerBlock]]
) -> ServerBlock:
    """The settings of one block, whose keys are noted in `served`."""
    keys = parse_keys(block.keys, default_port)
    origins = tuple(dict.fromkeys(key.origin for _, key in keys))
    settings = build_block(block, (key for _, key in keys), Context(origins, directory, cache=cache))
    served.extend((token, key, settings) for token, key in keys)
    return settings
