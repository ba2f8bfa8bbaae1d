"""Text of files: any octets may be in a comment, in every file that the product reads; a byte order mark is no text."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.node_cache_template import ENVIRONMENT, node_flags
from topodns.app.load import load_settings
from topodns.corefile.errors import ConfigError
from topodns.corefile.files import load_nameservers, load_search_list
from topodns.dns.name import ROOT
from topodns.files.text import MAX_LINE, BadText, decoded, foreign_octet, numbered_lines
from topodns.kube.client.contract import ApiError
from topodns.kube.client.kubeconfig import Kubeconfig
from topodns.kube.manifests.source import ManifestSource
from topodns.nodecache.corefile import NodeCorefile
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.source import ZoneFileSource
from topodns.plugins.hosts.settings import Hosts
from topodns.plugins.hosts.source import HostsSource
from topodns.plugins.loadbalance.source import WeightSource

MARK = b"\xef\xbb\xbf"


@given(st.binary())
def test_octets_that_are_no_utf_8_are_characters_of_their_own(octets: bytes) -> None:
    try:
        text = decoded(octets)
    except ValueError:
        assert octets.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in octets[:4]
        return
    assert text.encode("utf-8", "surrogateescape") == octets.removeprefix(MARK)
    found, plain = foreign_octet(text), octets.removeprefix(MARK)
    before = plain.decode("utf-8", "ignore") if found is None else text[: found.offset]
    assert plain.startswith(before.encode())
    assert (found is None) == (before.encode() == plain)
    if found is not None:
        assert f"0x{plain[len(before.encode())]:02x}" in found.problem


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_another_encoding_of_unicode_is_refused(encoding: str) -> None:
    for text in (". {\n", "# \u00fc\n"):
        with pytest.raises(ValueError, match=r"^found UTF-16 or UTF-32, expected UTF-8$"):
            decoded(text.encode(encoding))


def corefile(path: Path) -> object:
    found = load_settings(str(path), 53, {})
    return [(block.keys, block.settings) for block in found.blocks]


def imported(path: Path) -> object:
    (path.parent / "Corefile").write_text(f". {{\n import {path.name}\n}}\n")
    return corefile(path.parent / "Corefile")


def template(path: Path) -> object:
    (path.parent / "Corefile.base").write_bytes(path.read_bytes())
    (path.parent / "resolv.conf").write_text("nameserver 192.0.2.53\n")
    made = NodeCorefile(node_flags(path.parent), ENVIRONMENT, str(path.parent / "resolv.conf"))
    rendered = made.render(made.read())
    assert not rendered.problems, rendered.problems
    return [(block.keys, block.settings) for block in made.settings(rendered.text).blocks]


def zone(path: Path) -> object:
    source = ZoneFileSource(ZoneFile(str(path), (("lan",),)))
    source.load()
    return source.table(("lan",))


def hosts(path: Path) -> object:
    source = HostsSource(Hosts((ROOT,), str(path)))
    source.load()
    return source.table().names(bytes((10, 0, 0, 1))), source.table().names(bytes((10, 0, 0, 2)))


def weights(path: Path) -> object:
    source = WeightSource(str(path), 0)
    source.poller.load()
    return source.weights()


def nameservers(path: Path) -> object:
    return load_nameservers(str(path))


def search_list(path: Path) -> object:
    return load_search_list(str(path))


def manifests(path: Path) -> object:
    read: list[object] = []

    def emit(change: object) -> list[object]:
        read.append(change)
        return []

    source = ManifestSource([str(path)], emit)
    source.load()
    assert not source.problems, source.problems
    return read


def kubeconfig(path: Path) -> object:
    found = asyncio.run(Kubeconfig(str(path), "", 1.0).check())
    return found.server, found.authorization


Reader = Callable[[Path], object]
# The text of each kind of file, with a comment at each %b, and what reads it.
FILES: dict[str, tuple[Reader, bytes]] = {
    "Corefile": (corefile, b"# %b\n. { # %b\n whoami\n#%b\n errors\n}\n# %b"),
    "imported file": (imported, b"#%b\nwhoami # %b\nerrors"),
    "template": (template, b"# %b\n. {\n bind __PILLAR__LOCAL__DNS__ # %b\n forward . 192.0.2.1 #%b\n}\n"),
    "zone file": (zone, b"$TTL 300 ;%b\n; %b\n@ SOA ns h ( 1 2 ; %b\n 3 4 5 )\n@ NS ns\nns A 10.0.0.1 ; %b\n"),
    "hosts file": (hosts, b"10.0.0.1 a # %b\n#%b\n10.0.0.2 b\n"),
    "weights": (weights, b"# %b\nwww.example\n  #%b\n10.0.0.1 3\n"),
    "nameservers": (nameservers, b"# %b\nnameserver 192.0.2.1\n;%b\nnameserver 192.0.2.2 # %b\n"),
    "search list": (search_list, b"# %b\nsearch example.org lan\n;%b\nfoo %b\n"),
    "manifests": (
        manifests,
        b"# %b\nkind: Node\nmetadata: {name: n1} # %b\n--- # %b\n{kind: Node, # %b\nmetadata: {name: n2}}\n#%b\n",
    ),
    "kubeconfig": (
        kubeconfig,
        b"# %b\nkind: Config\ncurrent-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}] #%b\n"
        b"clusters: [{name: a, cluster: {server: 'https://10.0.0.1'}}]\nusers: [{name: a, user: {token: abc}}]\n",
    ),
}
# To YAML these end a line, and so a comment: carriage return, NEL, and the separators of lines and paragraphs.
COMMENTS = (st.binary(max_size=8) | st.text(max_size=4).map(lambda text: text.encode("utf-16-le"))).filter(
    lambda octets: not {"\n", "\r", "\x85", "\u2028", "\u2029"} & set(octets.decode("utf-8", "replace"))
)


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(mark=st.sampled_from([b"", MARK]), comments=st.lists(COMMENTS, min_size=5, max_size=5))
def test_any_octets_may_be_in_a_comment(tmp_path: Path, kind: str, mark: bytes, comments: list[bytes]) -> None:
    read, text = FILES[kind]
    path = tmp_path / "file"
    path.write_bytes(text.replace(b"%b", b""))
    expected = read(path)
    assert expected
    path.write_bytes(mark + text % tuple(comments[: text.count(b"%b")]))
    assert read(path) == expected


FOREIGN: dict[str, tuple[Reader, bytes, int]] = {
    "Corefile": (corefile, b"# \xfc\n. {\n whoami \xfc\n}\n", 3),
    "imported file": (imported, b"# \xfc\nlog \xfc", 2),
    "template": (template, b"# \xfc\n. {\n bind __PILLAR__LOCAL__DNS__\n forward \xfc 192.0.2.1\n}\n", 4),
    "zone file": (zone, b'; \xfc\n@ 300 SOA ns h 1 2 3 4 5\n@ 300 NS ns\n@ 300 TXT "\xfc"\n', 4),
    "nameservers": (nameservers, b"# \xfc\nnameserver \xfc\n", 2),
    "search list": (search_list, b"# \xfc\nsearch lan \xfc\n", 2),
    "manifests": (manifests, b"# \xfc\nkind: Node\nmetadata: {name: \xfc}\n", 2),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_octets_that_are_no_utf_8_are_refused_elsewhere_with_file_and_line(tmp_path: Path, kind: str) -> None:
    read, text, line = FOREIGN[kind]
    (tmp_path / "file").write_bytes(text)
    with pytest.raises((ConfigError, BadText, AssertionError)) as refused:
        read(tmp_path / "file")
    assert f":{line}: " in str(refused.value)


@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in ("manifests", "kubeconfig")])  # they are read
def test_a_file_in_utf_16_says_so(tmp_path: Path, kind: str, caplog: pytest.LogCaptureFixture) -> None:
    read, text = FILES[kind]
    (tmp_path / "file").write_bytes(text.replace(b"%b", b"").decode().encode("utf-16"))
    try:
        read(tmp_path / "file")
    except (ConfigError, BadText, ApiError, AssertionError) as problem:
        said = [*caplog.messages, str(problem)]
    else:
        said = caplog.messages
    assert any("found UTF-16 or UTF-32, expected UTF-8" in line for line in said)


def test_lines_are_numbered_and_have_no_newline() -> None:
    assert list(numbered_lines(b"a\n\nb\r\nc")) == [(1, b"a"), (2, b""), (3, b"b\r"), (4, b"c")]
    assert list(numbered_lines(b"a\n")) == [(1, b"a")]
    assert list(numbered_lines(b"")) == []


def test_a_line_longer_than_its_limit_is_none() -> None:
    most = b"a" * MAX_LINE
    assert list(numbered_lines(most + b"\n" + most + b"a\nb")) == [(1, most), (2, None), (3, b"b")]
    assert list(numbered_lines(most + b"a")) == [(1, None)]
