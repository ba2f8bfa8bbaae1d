"""A change of node-cache's files soon is the Corefile in force, or leaves it as it is. Real files and notifications."""

import asyncio
import logging
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE, eventually
from tests.support.node_cache_template import ENVIRONMENT, node_flags, node_template
from topodns.files.watch import watch_files
from topodns.nodecache.config_watch import NodeConfigWatch
from topodns.nodecache.corefile import NodeCorefile


class Volume:
    """A ConfigMap as the kubelet mounts it: each version a directory of its own, behind the link ..data."""

    def __init__(self, path: Path, **files: str) -> None:
        self.path = path
        self._version = 0
        path.mkdir()
        self.publish(**files)

    def publish(self, **files: str) -> None:
        """The next version, with these keys (`_` means a dot) and no others."""
        self._version += 1
        version = f"..v{self._version}"
        (self.path / version).mkdir()
        names = {key.replace("_", "."): text for key, text in files.items()}
        for name, text in names.items():
            (self.path / version / name).write_text(text)
        (self.path / "..data_tmp").symlink_to(version)
        (self.path / "..data_tmp").replace(self.path / "..data")
        for name in names:
            if not (self.path / name).is_symlink():
                (self.path / name).symlink_to(f"..data/{name}")
        for link in self.path.iterdir():
            if not link.name.startswith("..") and link.name not in names:
                link.unlink()
        shutil.rmtree(self.path / f"..v{self._version - 1}", ignore_errors=True)


class Node:
    """A node's files and the watch that follows them. `heard` are the Corefiles that it published."""

    def __init__(self, directory: Path, *arguments: str) -> None:
        self.heard: list[str] = []
        (directory / "resolv.conf").write_text("nameserver 192.0.2.53\n")
        flags = node_flags(directory, *arguments)
        self.corefile = NodeCorefile(flags, ENVIRONMENT, str(directory / "resolv.conf"))
        self.watch = NodeConfigWatch(self.corefile.read, self.corefile.render, self.heard.append, flags.conf)

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        self.watch.load()
        async with aclosing(watch_files(self.corefile.paths)) as changes:
            task = asyncio.create_task(self.watch.run(changes), name="node config")
            try:
                yield
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task

    def looks_after(self, *edits: Callable[[], object]) -> None:
        """Start, then look once after each edit."""

        async def looks() -> AsyncIterator[frozenset[str]]:
            for edit in edits:
                edit()
                yield frozenset()

        self.watch.load()
        asyncio.run(self.watch.run(looks()))

    async def hears(self, *expected: str) -> None:
        """The last published Corefile has all of these words."""
        await eventually(lambda: bool(self.heard) and all(word in self.heard[-1] for word in expected))
        assert self.heard[-1] == self.watch.text


def stub(domain: str) -> str:
    return f'{{"{domain}": ["192.0.2.1"]}}'


def in_place(file: Path, text: str) -> None:
    file.write_text(text)


def by_rename(file: Path, text: str) -> None:
    draft = file.with_name(".draft")
    draft.write_text(text)
    draft.replace(file)


@pytest.mark.parametrize("edit", [in_place, by_rename])
async def test_an_edited_template_is_taken_over(tmp_path: Path, edit: Callable[[Path, str], None]) -> None:
    base = tmp_path / "Corefile.base"
    base.write_text(node_template())
    node = Node(tmp_path)
    async with node.watching():
        assert "\ncluster.local:53 {" in f"\n{node.watch.text}"
        for domain in ("one.example", "two.example"):
            edit(base, node_template(domain))
            await node.hears(f"{domain}:53 {{")
    assert len(node.heard) == 2


async def test_configmaps_are_followed_through_the_links_of_their_volumes(tmp_path: Path) -> None:
    base = Volume(tmp_path / "coredns", Corefile_base=node_template())
    kube_dns = Volume(tmp_path / "kube-dns")
    node = Node(tmp_path, f"-basecorefile={base.path / 'Corefile.base'}")
    async with node.watching():
        kube_dns.publish(stubDomains=stub("a.example"))
        await node.hears("a.example:53 {")
        base.publish(Corefile_base=node_template("one.example"))
        await node.hears("one.example:53 {", "a.example:53 {")
        kube_dns.publish(upstreamNameservers='["192.0.2.7"]')
        await node.hears("one.example:53 {", "forward . 192.0.2.7")
        assert "a.example" not in node.watch.text
        base.publish(Corefile_base=node_template("two.example"))
        await node.hears("two.example:53 {", "forward . 192.0.2.7")
        kube_dns.publish()
        await node.hears("two.example:53 {", "resolv.conf")
    assert node.watch.setup_errors == 0


async def test_a_configmap_that_is_not_there_at_first_counts_from_when_it_is(tmp_path: Path) -> None:
    (tmp_path / "Corefile.base").write_text(node_template())
    node = Node(tmp_path)
    async with node.watching():
        Volume(tmp_path / "kube-dns", stubDomains=stub("a.example"))
        await node.hears("a.example:53 {")
        shutil.rmtree(tmp_path / "kube-dns")
        await eventually(lambda: len(node.heard) == 2)
        assert "a.example" not in node.watch.text


def test_a_write_without_a_change_is_not_published(tmp_path: Path) -> None:
    base, kube_dns = tmp_path / "Corefile.base", tmp_path / "kube-dns"
    base.write_text(node_template())
    kube_dns.mkdir()
    (kube_dns / "stubDomains").write_text('{"a.example": ["192.0.2.1"], "b.example": ["192.0.2.1"]}')
    node = Node(tmp_path)
    node.looks_after(
        base.touch,
        lambda: (kube_dns / "stubDomains").write_text('{"b.example":["192.0.2.1"],\n"a.example":["192.0.2.1"]}'),
        lambda: (kube_dns / "federations").write_text(""),
    )
    assert (node.heard, node.watch.setup_errors) == ([], 0)


BAD = {
    "a broken template": ("Corefile.base", ". {", "Corefile.base:1: expected '}' to end '.'"),
    "an unfilled variable": (
        "Corefile.base",
        node_template("__PILLAR__DNS__DOMAIN__"),
        "found __PILLAR__DNS__DOMAIN__",
    ),
    "an emptied template": ("Corefile.base", "", "Corefile.base: is empty"),
    "broken JSON": ("kube-dns/stubDomains", "{", "stubDomains:1: found no JSON"),
    "a server that is a name": ("kube-dns/upstreamNameservers", '["dns.example"]', "found the server 'dns.example'"),
    "a domain that is served already": ("kube-dns/stubDomains", stub("cluster.local"), "found cluster.local.:53 again"),
}


@pytest.mark.parametrize("fault", BAD)
def test_n20_a_bad_configuration_is_logged_and_counted_and_the_one_before_it_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, fault: str
) -> None:
    path, text, problem = BAD[fault]
    base, stub_domains, file = tmp_path / "Corefile.base", tmp_path / "kube-dns" / "stubDomains", tmp_path / path
    base.write_text(node_template())
    stub_domains.parent.mkdir()
    node = Node(tmp_path)
    in_force: list[str] = []

    def mend() -> None:
        in_force.append(node.watch.text)
        file.unlink()
        base.write_text(node_template())
        stub_domains.write_text(stub("mended.example"))

    with caplog.at_level(logging.ERROR):
        node.looks_after(lambda: in_force.append(node.watch.text), lambda: file.write_text(text), mend)
    (line,) = caplog.messages
    assert problem in line
    assert line.endswith("; the configuration before it stays in force")
    assert in_force[0] == in_force[1]
    assert [("mended.example:53 {" in heard) for heard in node.heard] == [True]
    assert node.watch.setup_errors == 1


def test_n20_a_fault_that_stays_is_counted_once_and_another_one_again(tmp_path: Path) -> None:
    base, servers = tmp_path / "Corefile.base", tmp_path / "kube-dns" / "upstreamNameservers"
    base.write_text(node_template())
    servers.parent.mkdir()
    node = Node(tmp_path)
    counts: list[int] = []

    def count() -> None:
        counts.append(node.watch.setup_errors)

    node.looks_after(
        *(lambda: servers.write_text('["a"]'), count),
        *(lambda: base.write_text(node_template("one.example")), count),  # good, but it has to wait for the other
        *(lambda: servers.write_text('["b"]'), count),
        *(servers.unlink, count),
        *(lambda: servers.write_text('["b"]'), count),
    )
    assert counts == [1, 1, 2, 2, 3]
    assert [text.splitlines()[0] for text in node.heard] == ["one.example:53 {"]


def test_a_corefile_refused_for_an_import_is_loaded_once_the_imported_file_is_repaired(tmp_path: Path) -> None:
    base, part = tmp_path / "Corefile.base", tmp_path / "part"
    base.write_text(". {\n}\n")
    part.write_text("whoami nonsense\n")
    node = Node(tmp_path)
    imports = ". {\n    import part\n}\n"
    node.looks_after(lambda: base.write_text(imports), lambda: None, lambda: part.write_text("whoami\n"))
    assert (node.heard, node.watch.setup_errors) == ([imports], 1)


def test_a_node_starts_without_a_bad_kube_dns_configmap_and_takes_it_over_once_it_is_mended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        (tmp_path / "Corefile.base").write_text(node_template())
        kube_dns = Volume(tmp_path / "kube-dns", stubDomains="{", upstreamNameservers='["192.0.2.7"]')
        node = Node(tmp_path)
        async with node.watching():
            assert "resolv.conf" in node.watch.text
            assert node.watch.setup_errors == 1
            kube_dns.publish(stubDomains=stub("a.example"), upstreamNameservers='["192.0.2.7"]')
            await node.hears("a.example:53 {", "forward . 192.0.2.7")

    with caplog.at_level(logging.ERROR):
        asyncio.run(story())
    (line,) = caplog.messages
    assert line.endswith("; starting without the kube-dns ConfigMap")


def test_with_a_bad_template_there_is_nothing_to_start_with(tmp_path: Path) -> None:
    (tmp_path / "Corefile.base").write_text(". {\n  forwart\n}\n")
    Volume(tmp_path / "kube-dns", stubDomains="{")
    node = Node(tmp_path)
    assert node.watch.load().problems == (
        f"{tmp_path / 'Corefile.base'}:2: unknown directive 'forwart', did you mean 'forward'?",
    )
    assert (node.watch.text, node.watch.setup_errors) == ("", 1)
    assert not (tmp_path / "Corefile").exists()


def test_the_corefile_in_force_is_written_where_conf_says(tmp_path: Path) -> None:
    base, copy = tmp_path / "Corefile.base", tmp_path / "Corefile"
    base.write_text(node_template())
    node = Node(tmp_path)
    copies: list[str] = []
    node.looks_after(
        lambda: copies.append(copy.read_text()),
        lambda: base.write_text(node_template("one.example")),
        lambda: copies.append(copy.read_text()),
        lambda: base.write_text(". {"),
    )
    copies.append(copy.read_text())
    assert [text.splitlines()[0] for text in copies] == ["cluster.local:53 {", *["one.example:53 {"] * 2]


def test_a_copy_that_cannot_be_written_is_said_once_and_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    base = tmp_path / "Corefile.base"
    base.write_text(node_template())
    node = Node(tmp_path, f"-conf={tmp_path / 'gone' / 'Corefile'}")
    with caplog.at_level(logging.WARNING):
        node.looks_after(lambda: base.write_text(node_template("one.example")))
    assert (len(node.heard), node.watch.setup_errors) == (1, 0)
    assert caplog.messages == [
        f"node-cache: cannot write {tmp_path / 'gone' / 'Corefile'}: No such file or directory; "
        "the Corefile is served all the same"
    ]


def test_none_of_this_imports_a_library_that_a_node_would_have_to_hold_in_memory() -> None:
    heavy = ("kubernetes", "aiohttp", "msgspec", "prometheus_client", "yaml", "dnslib")
    script = (
        "import sys, topodns.nodecache.flags, topodns.nodecache.corefile\n"
        "import topodns.nodecache.config_watch\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=PATIENCE)
    assert run.stdout == "[]\n"


async def test_without_a_template_the_corefile_of_conf_is_followed_and_never_written(tmp_path: Path) -> None:
    """As kubespray and KubeKey mount it: a ConfigMap at the path of -conf, which the kubelet changes."""
    mounted = Volume(tmp_path / "coredns", Corefile=". {\n    forward . 192.0.2.1\n}\n")
    node = Node(tmp_path, f"-conf={mounted.path / 'Corefile'}")
    async with node.watching():
        assert "192.0.2.1" in node.watch.text
        mounted.publish(Corefile=". {\n    forward . 192.0.2.2\n}\n")
        await node.hears("192.0.2.2")
        assert (mounted.path / "Corefile").is_symlink()
        assert (mounted.path / "Corefile").read_text() == node.watch.text
