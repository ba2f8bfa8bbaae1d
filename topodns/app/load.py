"""Settings of a parsed Corefile: each directive by its own parser, then the rules between directives and blocks."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from topodns.corefile.errors import MAX_ERRORS, ConfigError, Note, Problems, may_show_key, shown, shown_word, unshown
from topodns.corefile.files import load_corefile
from topodns.corefile.imports import Importer
from topodns.corefile.lexer import Token
from topodns.corefile.parser import CorefileBlock, Directive, parse_blocks
from topodns.corefile.zones import BlockKey, parse_keys
from topodns.dns.name import ROOT, Name, is_subdomain, name_text
from topodns.plugins.block import ExpandedCorefile, ServerBlock, Settings
from topodns.plugins.cache.settings import Cache, Persist
from topodns.plugins.compatibility import is_known, unknown_problem
from topodns.plugins.context import Context
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import load
from topodns.query.metadata import why_without_value

if TYPE_CHECKING:
    from topodns.plugins.kubernetes.settings import KubernetesSettings, SnapshotSettings
    from topodns.plugins.tls import Tls

_GOOD_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "bind": ("127.0.0.1",),
    "file": ("file",),
    "forward": (".", "192.0.2.53"),
    "template": ("IN", "A"),
    "view": ("view",),
}
"""Arguments in place of refused ones, so that options can be checked; () for all other directives."""
_ARGUMENTS_CHOOSE_OPTIONS: Final = frozenset({"loadbalance"})


def directive_errors(directive: Directive, first: ConfigError, context: Context) -> tuple[list[ConfigError], bool]:
    """All errors of a directive, of each line the first, where `first` is what its parser has raised; and whether every
    option was checked.

    After each error the directive is parsed again, without the wrong option or with other arguments. An error of its
    own line may only follow from an option that was taken out, and ends the search.
    """
    context = replace(context, warn=str)
    errors, replaced = [first], directive.name in _ARGUMENTS_CHOOSE_OPTIONS  # or must not be replaced
    whole = directive.body
    while len(errors) < MAX_ERRORS:
        place = (errors[-1].file, errors[-1].line)
        wrong = [option for option in directive.body if _has_place(option, place)]
        rest = tuple(option for option in directive.body if option not in wrong)
        if not rest or any(option.missing_brace for option in wrong):
            return errors, True
        if wrong:
            directive = replace(directive, body=rest)
        elif not replaced:
            directive, replaced = replace(directive, args=_GOOD_ARGUMENTS.get(directive.name, ())), True
        else:
            return errors, False
        try:
            load(directive.name).parse(directive, context)
        except ConfigError as problem:
            if directive.body != whole and (problem.file, problem.line) == (directive.file, directive.line):
                return errors, True
            errors.append(problem)
        else:
            return errors, True
    return errors, False


def _has_place(option: Directive, place: tuple[str, int]) -> bool:
    return any((line.file, line.line) == place for line in (option, *option.body))


_Keys = Sequence[tuple[Token, BlockKey]]


class _Reach:
    """The names of which queries reach a server block, by the zones of all blocks on its ports.

    None are known where `bind` or `view` may separate the blocks, or where a plugin of the block asks for other names.
    """

    def __init__(
        self, block: CorefileBlock, keys: _Keys, blocks: Sequence[CorefileBlock], all_keys: Sequence[_Keys]
    ) -> None:
        self._names = {directive.name for directive in block.directives}
        if any(directive.name == "rewrite" and "continue" in _words(directive) for directive in block.directives):
            self._names.add("rewrite continue")
        self._own = {key.origin for _, key in keys}
        self._block, self._keys = block, keys
        self._blocks, self._all_keys = blocks, all_keys

    @cached_property
    def _others(self) -> Sequence[tuple[Name, Token]]:
        """The keys of the other blocks on this block's port; made on first use, as most blocks need none."""
        if not self._names.isdisjoint(_SEPARATING):
            return ()
        ports = {(key.port, key.tls) for _, key in self._keys}
        return [
            (key.origin, token)
            for other, theirs in zip(self._blocks, self._all_keys, strict=True)
            if other is not self._block and _is_everywhere(other)
            for token, key in theirs
            if ports == {(key.port, key.tls)}
        ]

    def warnings(self, directive: Directive, zones: Iterable[Name]) -> Iterator[str]:
        """A line if no query for the first of these zones reaches the directive, and how many others there are."""
        reasons = [(origin, reason) for origin in zones if (reason := self._why_not(origin))]
        if reasons and self._names.isdisjoint(_ASKING - {directive.name}):
            origin, reason = reasons[0]
            more = f" (and {len(reasons) - 1} more)" * (len(reasons) > 1)
            found = f"{directive.shown_argument(name_text(origin))}{more}"
            yield f"plugin/{directive.name}: no query for {found} comes here: {reason} ({directive.place})"

    def _why_not(self, name: Name) -> str:
        """Why no name at or below this one is asked of the block; "" where one may be."""
        if not self._own or any(is_subdomain(origin, name) for origin in self._own):
            return ""
        around = max((origin for origin in self._own if is_subdomain(name, origin)), key=len, default=None)
        if around is None:
            return "it is outside the zones of the server block"
        inside = [(origin, token) for origin, token in self._others if is_subdomain(name, origin)]
        origin, token = max(inside, key=lambda other: len(other[0]), default=(around, None))
        if token is None or len(origin) <= len(around):
            return ""
        return f"the server block at {token.file}:{token.line} takes them"


_SEPARATING: Final = frozenset({"bind", "view"})
_ASKING: Final = frozenset({"rewrite", "rewrite continue", "autopath"})  # those below see other names than the queries'


def _words(directive: Directive) -> Iterator[str]:
    for line in (directive, *directive.body):
        yield from (word.lower() for word in (line.name, *line.args))


def _is_everywhere(block: CorefileBlock) -> bool:
    return _SEPARATING.isdisjoint(directive.name for directive in block.directives)


class _BlockReader:
    """Reads the directives of one block. `unread`: the names of those with an error; "" for what is no directive."""

    def __init__(self, context: Context, problems: Problems, reach: _Reach) -> None:
        self._context = context
        self._problems = problems
        self._reach = reach
        self._first: dict[str, Directive] = {}
        self._values: dict[str, Any] = {}
        self.unread: set[str] = set()

    def read(self, directive: Directive) -> None:
        name, earlier = directive.name, self._first.get(directive.name)
        if name not in ORDER:
            self._refuse("", directive.error(unknown_problem(directive)))
            return
        self._first.setdefault(name, directive)
        plugin = load(name)
        if earlier is not None and not plugin.adds_up:
            self._refuse(name, directive.error(f"found '{name}' again, first at {earlier.place}"))
        try:
            value = plugin.parse(directive, self._context)
        except ConfigError as problem:
            self._refuse(name, *directive_errors(directive, problem, self._context)[0])
        else:
            self._values[name] = self._values[name] + value if plugin.adds_up and name in self._values else value
            if plugin.zones is not None:
                for line in self._reach.warnings(directive, plugin.zones(value)):
                    self._context.warn(line)

    def _refuse(self, name: str, *errors: ConfigError) -> None:
        self.unread.add(name)
        for problem in errors:
            self._problems.note(problem)

    def check_companions(self) -> None:
        """Note the error of a directive without another that it requires, or that its plugin's `check` refuses.

        Without effect where an unknown or a missing line may be the other directive.
        """
        if "" in self.unread or self._problems.incomplete:
            return
        for name, directive in self._first.items():
            plugin = load(name)
            with self._problems.noted():
                for required in plugin.requires:
                    if required not in self._first:
                        found = f"found '{name}' in a server block without '{required}', expected both"
                        raise directive.error(found)
                if plugin.check is not None and name not in self.unread:
                    plugin.check(directive, self._values[name], self._first.keys())

    def settings(self) -> Mapping[str, Any]:
        return {name: self._values[name] for name in ORDER if name in self._values}


Warn = Callable[[str], object]
"""Takes a log line about a valid Corefile that may not have the intended meaning."""


def check_transports(served: Sequence[tuple[Token, BlockKey, ServerBlock]], note: Note, warn: Warn) -> None:
    """Refuse a key with tls:// whose block has no `tls`, a port with and without TLS, and two `tls` at one listener.

    `note` takes the errors; `warn` a line about a block whose `tls` has no effect.
    """
    listeners: dict[tuple[object, ...], tuple[Token, BlockKey, Tls | None]] = {}
    for token, key, block in served:
        tls = block.settings.get("tls") if key.tls else None
        if key.tls and tls is None:
            note(token.error("found tls:// in a server block without 'tls', expected both"))
            continue
        for host in block.bound_hosts:
            place = (host, key.port) if key.port else key.at(host)  # port 0: each transport gets a free one
            earlier, other, others = listeners.setdefault(place, (token, key, tls))
            first = f"{earlier.file}:{earlier.line}"
            if other.tls is not key.tls:
                note(token.error(f"found a block with and one without tls:// on port {key.port}, first at {first}"))
            elif others != tls:
                note(token.error(f"found another 'tls' than in the block at {first}, expected one for each port"))
    for block in {id(block): block for _, _, block in served}.values():
        if "tls" in block.settings and not any(key.tls for key in block.keys):
            warn(f"plugin/tls: The block has no key with tls://, so there is no effect ({block.source}:{block.line})")


def check_overlaps(served: Iterable[tuple[Token, BlockKey, ServerBlock]], note: Note) -> None:
    """Refuse two keys of the same zone and port, unless `bind` or `view` separates them.

    `note` takes the error of each later key.
    """
    by_key: dict[BlockKey, list[tuple[Token, ServerBlock]]] = {}
    for token, key, block in served:
        by_key.setdefault(key, []).append((token, block))
    for key, users in by_key.items():
        for at, (later, other) in enumerate(users):
            earlier = next((token for token, one in islice(users, at) if _overlap(one, other)), None)
            if earlier is not None:
                hidden = later.imported and not may_show_key(later.text)
                found = unshown(later.text) if hidden else f"{name_text(key.origin)}:{key.port}"
                note(later.error(f"found {found} again, first at {earlier.file}:{earlier.line}"))


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


def check_written_files(blocks: Iterable[ServerBlock], note: Note) -> None:
    """Refuse a file that two directives would write: each would replace what the other one has written.

    `note` takes the error of each later one.
    """
    first: dict[str, Directive] = {}
    for block in blocks:
        for written in _written_files(block):
            option = first.setdefault(os.path.realpath(written.path), written.option)
            if option is not written.option:
                found = f"found the file of '{option.name}' again, first at {option.place}, expected one of its own"
                note(written.option.error(found))


def _written_files(block: ServerBlock) -> "Iterator[Persist | SnapshotSettings]":
    cache: Cache | None = block.settings.get("cache")
    if cache is not None and cache.persist is not None:
        yield cache.persist
    kubernetes: KubernetesSettings | None = block.settings.get("kubernetes")
    if kubernetes is not None and kubernetes.snapshot is not None:
        yield kubernetes.snapshot


def warn_of_labels(blocks: Iterable[ServerBlock], warn: Warn) -> None:
    """Name each label of metadata that a directive reads and that never has a value in its server block."""
    for block in blocks:
        for name, settings in block.settings.items():
            labels = load(name).labels
            for label in sorted(labels(settings)) if labels is not None else ():
                if reason := why_without_value(label, block.settings):
                    found = f"The metadata label {shown(label)} never has a value: {reason}"
                    warn(f"plugin/{name}: {found} ({block.source}:{block.line})")


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
        warn(
            f"Found no Corefile in {os.getcwd()}, so this is the built-in one: whoami on port {default_port}, which "
            "answers with the client's address; -conf FILE names another"
        )
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
    problems = Problems()
    importer = Importer(environment, problems.note)
    tokens = read_tokens(importer, text, file, problems)
    expanded = ExpandedCorefile(
        tokens=tuple(tokens),
        file=file,
        default_port=default_port,
        digest=importer.digest,
        files=tuple(importer.files),
        cache=host.cache,
    )
    settings = _settings(expanded, replace(host, warn=warn), problems)
    if problems:
        raise problems.error(importer.explained)
    _warn_of(importer, warn)
    return settings


def read_tokens(importer: Importer, text: str, file: str, problems: Problems) -> list[Token]:
    """The tokens of a Corefile with imports expanded; none if there are too many. `problems`: those of the importer."""
    tokens: list[Token] = []
    with problems.noted():
        tokens = list(importer.read(text, file))
    return tokens


def _warn_of(importer: Importer, warn: Warn) -> None:
    for pattern in importer.unmatched:  # in CoreDNS's words
        warn(f"No files matching import glob pattern: {pattern.text} ({pattern.file}:{pattern.line})")
    for (file, line), names in importer.unset.items():
        for name in names:
            warn(f"The environment variable {shown_word(name)} is not set, so it is empty ({file}:{line})")


def settings_from_tokens(expanded: ExpandedCorefile, host: Context = _HOST) -> Settings:
    """The settings of a Corefile whose imports are expanded. Raises ConfigError."""
    problems = Problems()
    settings = _settings(expanded, host, problems)
    if problems:
        raise problems.error()
    if not expanded.addresses:
        return settings
    # Imported here, as in `app.server`.
    from topodns.plugins.forward.host_names import with_addresses

    return with_addresses(settings, expanded.addresses)


def _settings(expanded: ExpandedCorefile, host: Context, problems: Problems) -> Settings:
    """The settings, of what could be read; `problems` gets the errors."""
    parsed = parse_blocks(expanded.tokens, is_known, problems.note)
    if not parsed and not problems:
        problems.note(ConfigError(expanded.file, 0, _NO_BLOCK))
    host = replace(host, directory=os.path.dirname(expanded.file), cache=expanded.cache)
    problems.incomplete = bool(problems)
    keys = [list(_keys(block, expanded.default_port, problems)) for block in parsed]
    blocks, served = list[ServerBlock](), list[tuple[Token, BlockKey, ServerBlock]]()
    for block, own in zip(parsed, keys, strict=True):
        origins = tuple(dict.fromkeys(key.origin for _, key in own)) or (ROOT,)
        reader = _BlockReader(replace(host, origins=origins), problems, _Reach(block, own, parsed, keys))
        settings = _build(block, own, reader, problems)
        blocks.append(settings)
        if reader.unread.isdisjoint(("", "bind", "tls", "view")) and not problems.incomplete:
            served.extend((token, key, settings) for token, key in own)
    check_overlaps(served, problems.note)
    check_transports(served, problems.note, host.warn)
    check_written_files(blocks, problems.note)
    warn_of_labels(blocks, host.warn)
    several = any("multisocket" in block.settings for block in blocks)
    return Settings(tuple(blocks), expanded.digest, expanded.files, expanded if several else None)


def _keys(block: CorefileBlock, default_port: int, problems: Problems) -> Iterator[tuple[Token, BlockKey]]:
    for token in block.keys:
        with problems.noted():
            yield from parse_keys((token,), default_port)


def _build(
    block: CorefileBlock, keys: Iterable[tuple[Token, BlockKey]], reader: _BlockReader, problems: Problems
) -> ServerBlock:
    for directive in block.directives:
        if not problems.full:
            reader.read(directive)
    reader.check_companions()
    return ServerBlock(tuple(key for _, key in keys), block.file, block.line, reader.settings())
