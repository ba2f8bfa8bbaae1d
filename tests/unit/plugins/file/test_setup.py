"""`file DBFILE [ZONES...] { options }`. A directive is written as in a Corefile; it starts on line 1."""

import pytest

from tests.support.corefile_settings import only_directive
from topodns.corefile.errors import ConfigError
from topodns.plugins.context import Context
from topodns.plugins.file.settings import ZoneFile
from topodns.plugins.file.setup import parse_file

ORG, NET = ("example", "org"), ("example", "net")


def zone_file(text: str) -> ZoneFile:
    (settings,) = parse_file(only_directive(text), Context((ORG,), "/etc/topodns"))
    return settings


PARSED = {
    "file db": ZoneFile("/etc/topodns/db", (ORG,)),
    "file /var/db example.org Example.net.": ZoneFile("/var/db", (ORG, NET)),
    "file /var/db {\n reload 30s\n}": ZoneFile("/var/db", (ORG,), reload=30.0),
    "file /var/db {\n reload 0\n}": ZoneFile("/var/db", (ORG,), reload=0.0),
    "file /var/db {\n reload_by_mtime\n upstream\n}": ZoneFile("/var/db", (ORG,)),
    "file /var/db {\n fallthrough\n}": ZoneFile("/var/db", (ORG,), fallthrough=((),)),
    "file /var/db {\n fallthrough example.net\n}": ZoneFile("/var/db", (ORG,), fallthrough=(NET,)),
}


@pytest.mark.parametrize(("text", "settings"), PARSED.items())
def test_is_read_as_coredns_reads_it(text: str, settings: ZoneFile) -> None:
    assert zone_file(text) == settings


REFUSED = {
    "file": "Corefile:1: 'file' has no argument, expected a file, and perhaps zones",
    "file db a..b": "Corefile:1: found no zone's name: empty label in 'a..b'",
    "file db {\n reload\n}": "Corefile:2: 'reload' has no argument, expected a duration",
    "file db {\n reload often\n}": "Corefile:2: 'reload' has 'often', expected a duration such as",
    "file db {\n reload 1s\n reload 2s\n}": "Corefile:3: found 'reload' again",
    "file db {\n no_reload\n}": "Corefile:2: topodns has no option 'no_reload' of 'file': CoreDNS dropped it in 1.5",
    "file db {\n transfer to *\n}": "Corefile:2: topodns has no option 'transfer' of 'file': CoreDNS dropped it in 1.8",
    "file db {\n relaod 1s\n}": "Corefile:2: unknown option 'relaod' of 'file', did you mean 'reload'?",
    "file db {\n reload_by_mtime yes\n}": "Corefile:2: 'reload_by_mtime' has the arguments 'yes', expected none",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items())
def test_refuses(text: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        zone_file(text)
    assert str(refused.value).startswith(problem)
