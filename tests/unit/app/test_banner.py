"""The banner of a server: each key with the port that it has, then the version."""

import pytest

from tests.support.corefile_settings import settings
from topodns import __version__
from topodns.app.banner import print_banner, print_nothing, version_text
from topodns.corefile.zones import ListenAt

COREFILE = "example.org:1053 {\nbind 127.0.0.1\n}\n. {\nbind ::1\n}"
PORTS = {ListenAt("127.0.0.1", 1053): 1053, ListenAt("::1", 53): 40053}


def test_the_banner_has_the_ports_that_are_open(capsys: pytest.CaptureFixture[str]) -> None:
    print_banner(PORTS, settings(COREFILE))
    assert capsys.readouterr().out == f"example.org.:1053 on 127.0.0.1\n.:40053 on ::1\n{version_text()}\n"
    assert version_text().startswith(f"topodns-{__version__}\n")


def test_the_banner_ends_with_the_addresses_of_topology_pages(capsys: pytest.CaptureFixture[str]) -> None:
    block = "%s.org {\n kubernetes {\n manifests .\n }\n topology {\n page %s\n }\n}\n"
    pages = ("127.0.0.1:5382", "127.0.0.1:5382", "[::1]:8", ":9 public", "")
    corefile = "".join(block % (f"a{number}", page) for number, page in enumerate(pages))
    print_banner({ListenAt("", 53): 53}, settings(corefile + "b.org {\n whoami\n}"))
    assert capsys.readouterr().out.partition(f"{version_text()}\n")[2].splitlines() == [
        f"topology page http://{at}/topology" for at in ("127.0.0.1:5382", "[::1]:8", "127.0.0.1:9", "127.0.0.1:8182")
    ]


def test_a_quiet_server_has_no_banner(capsys: pytest.CaptureFixture[str]) -> None:
    print_nothing(PORTS, settings(COREFILE))
    assert capsys.readouterr().out == ""
