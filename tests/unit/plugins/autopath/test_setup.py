"""`autopath` with its search list. A directive is written as in a Corefile; it starts on line 1."""

from pathlib import Path

import pytest

from tests.support.corefile_settings import only_directive
from topodns.corefile.errors import ConfigError
from topodns.plugins.autopath.settings import Autopath
from topodns.plugins.autopath.setup import parse_autopath
from topodns.plugins.context import Context

ORG, NET = ("example", "org"), ("example", "net")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "resolv.conf").write_text("nameserver 10.0.0.1\ndomain a.org\nsearch example.org. Example.NET . a\n")
    (tmp_path / "empty").write_text("nameserver 10.0.0.1\n")
    (tmp_path / "broken").write_text("\nsearch a..b\n")
    return tmp_path


def autopath(text: str, directory: Path, host: str = "resolv.conf") -> Autopath:
    return parse_autopath(only_directive(text), Context((ORG,), str(directory)), str(directory / host))


def test_autopath_takes_the_search_list_of_a_file(directory: Path) -> None:
    found = (ORG, NET, ("a",))
    assert autopath("autopath resolv.conf", directory) == Autopath((ORG,), found)
    assert autopath(f"autopath example.net {directory}/resolv.conf", directory) == Autopath((NET,), found)


def test_autopath_of_kubernetes_goes_on_with_the_search_list_of_the_host(directory: Path) -> None:
    assert autopath("autopath @kubernetes", directory) == Autopath((ORG,), (ORG, NET, ("a",)), kubernetes=True)
    for host in ("empty", "broken", "missing"):
        assert autopath("autopath . @kubernetes", directory, host) == Autopath(((),), (), kubernetes=True)


def test_a_pod_s_search_list_has_32_domains_at_most_and_three_are_the_cluster_s(tmp_path: Path) -> None:
    (tmp_path / "resolv.conf").write_text("search " + " ".join(f"d{number}.example" for number in range(40)))
    search = autopath("autopath @kubernetes", tmp_path).search
    assert (len(search), search[-1]) == (29, ("d28", "example"))


@pytest.mark.parametrize("content", ["nameserver 10.0.0.1\n", "search .\n", "search\n"])
def test_a_file_without_a_search_domain_has_no_effect_and_is_warned_of(content: str, directory: Path) -> None:
    """systemd-resolved writes `search .` where there is none."""
    (directory / "resolv.conf").write_text(content)
    lines: list[str] = []
    context = Context((ORG,), str(directory), warn=lines.append)
    settings = parse_autopath(only_directive("autopath resolv.conf"), context)
    assert settings == Autopath((ORG,), ())
    assert lines == ["plugin/autopath: 'resolv.conf' has no search domain, so the directive has no effect (Corefile:1)"]


AUTOPATH_REFUSED = {
    "autopath": "Corefile:1: 'autopath' has no argument, expected a file like /etc/resolv.conf or @kubernetes",
    "autopath @etcd": "Corefile:1: 'autopath' has '@etcd', expected a file or @kubernetes",
    "autopath @kubernetes {\n x\n}": "Corefile:2: found 'x', but 'autopath' has no options",
}


@pytest.mark.parametrize(("text", "problem"), AUTOPATH_REFUSED.items())
def test_autopath_refuses(text: str, problem: str, directory: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        autopath(text, directory)
    assert str(refused.value).startswith(problem)


def test_a_problem_of_a_search_list_is_reported_at_its_place(directory: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        autopath("autopath broken", directory)
    assert str(refused.value).startswith(f"{directory}/broken:2: found the search domain 'a..b', which is none")
    with pytest.raises(ConfigError, match="cannot read"):
        autopath("autopath missing", directory)
