"""The way in: a Corefile, from disk or as text, to `Settings`."""

import os
from collections.abc import Mapping

from topodns.config.blocks import build_block, check_overlaps
from topodns.config.corefile import Block, parse_blocks
from topodns.config.directives import Context
from topodns.config.errors import ConfigError
from topodns.config.files import load_corefile
from topodns.config.imports import Importer
from topodns.config.keys import parse_keys
from topodns.config.lexer import Token
from topodns.settings.server import BlockKey, ServerBlock, Settings


def load_settings(path: str, default_port: int, environment: Mapping[str, str]) -> Settings:
    """The settings that the Corefile at `path` stands for. Raises ConfigError."""
    return settings_from_text(load_corefile(path), path, default_port, environment)


def settings_from_text(text: str, file: str, default_port: int, environment: Mapping[str, str]) -> Settings:
    """The settings that `text` stands for; `file` is its name in messages, and imports and paths are found beside it.

    `default_port` is that of keys without one; `environment` is what `{$NAME}` looks into. Raises ConfigError.
    """
    importer = Importer(environment)
    parsed = parse_blocks(importer.read(text, file))
    if not parsed:
        raise ConfigError(file, 0, "found no server block, expected at least one, such as '. { whoami }'")
    served: list[tuple[Token, BlockKey, ServerBlock]] = []
    blocks = tuple(_build(block, os.path.dirname(file), default_port, served) for block in parsed)
    check_overlaps(served)
    return Settings(blocks, importer.digest, tuple(importer.files))


def _build(
    block: Block, directory: str, default_port: int, served: list[tuple[Token, BlockKey, ServerBlock]]
) -> ServerBlock:
    """The settings of one block, whose keys are noted in `served`."""
    keys = parse_keys(block.keys, default_port)
    origins = tuple(dict.fromkeys(key.origin for _, key in keys))
    settings = build_block(block, (key for _, key in keys), Context(origins, directory))
    served.extend((token, key, settings) for token, key in keys)
    return settings
