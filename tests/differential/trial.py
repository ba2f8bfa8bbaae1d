"""One Corefile, both servers, the same questions."""

import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.differential.asking import ask_all
from tests.differential.comparison import Case
from tests.differential.corefiles import KUBERNETES, Corefile
from tests.differential.directive_corefiles import DIRECTIVES
from tests.differential.names import existing, under
from tests.differential.questions import Questions, each_of
from tests.differential.replies import Reply, read_reply
from tests.support.api_objects import Object
from tests.support.coredns import is_ready, running_coredns
from tests.support.server_process import Server, serving, until

COREFILES: Final = {**KUBERNETES, **DIRECTIVES}

_ZONE_FILE: Final = Path(__file__).with_name("zone.db")


class Directories(Protocol):
    def mktemp(self, basename: str) -> Path: ...


@dataclass(frozen=True, slots=True)
class World:
    """The same cluster as each server gets it: URLs of API servers, and a file. `objects` are CoreDNS's."""

    objects: Sequence[Object]
    theirs: str
    ours: str
    files: Path


class Trials:
    """`cases` asks once for each Corefile, however often it is called."""

    titles: Sequence[str] = tuple(COREFILES)

    def __init__(self, world: World, upstream: str, directories: Directories) -> None:
        self._names = existing(world.objects)
        common = {"UPSTREAM": upstream, "FILE": str(_ZONE_FILE)}
        self._theirs = {**common, "SOURCE": f"endpoint {world.theirs}", "API": world.theirs}
        self._ours = {**common, "SOURCE": f"manifests {world.files}", "API": world.ours}
        self._directories = directories
        self._cases: dict[str, Sequence[Case]] = {}

    def cases(self, title: str) -> Sequence[Case]:
        if title not in self._cases:
            self._cases[title] = self._try(title)
        return self._cases[title]

    def _try(self, title: str) -> Sequence[Case]:
        corefile = COREFILES[title]
        names = {sort: under(self._names[sort], corefile.origin) for sort in corefile.sorts}
        questions = list(each_of({sort: names[sort] for sort in corefile.each}))
        random = Questions({**names, **corefile.names}, zlib.crc32(title.encode()))
        questions += random.take(corefile.count)
        with self._both(corefile) as servers, ThreadPoolExecutor(len(servers)) as pool:
            theirs, ours = pool.map(lambda server: ask_all((server.address, server.port), questions), servers)
        return [
            Case(title, question, _read(their), _read(our))
            for question, their, our in zip(questions, theirs, ours, strict=True)
        ]

    @contextmanager
    def _both(self, corefile: Corefile) -> Iterator[tuple[Server, Server]]:
        """CoreDNS and topodns, both knowing the whole cluster."""
        one, other = self._directories.mktemp("coredns"), self._directories.mktemp("topodns")
        with (
            running_coredns(one, corefile.filled(self._theirs)) as theirs,
            serving(other, corefile.filled(self._ours)) as ours,
        ):
            until(lambda: is_ready(ours), "topodns ready")
            yield theirs, ours


def _read(message: bytes | None) -> Reply | None:
    return read_reply(message) if message is not None else None
