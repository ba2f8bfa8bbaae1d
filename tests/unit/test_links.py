"""The documents hang together: links lead somewhere, the index and the site's navigation have every one of them."""

import re
from urllib.parse import urlsplit

import pytest

from tests.support.documents import DOCUMENTS, ROOT

LINK = re.compile(r"\[[^]]*\]\(([^()\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
INLINE_CODE = re.compile(r"`+[^`]+`+")
EXTERNAL = re.compile(r"[\w+]+://[^\s()<>\[\]]*")
EXTERNAL_PATH = re.compile(r"(/[\w.,~@%+-]+)*/?")
NAVIGATION = re.compile(r"^  - (\S+\.md)$", re.MULTILINE)
HOSTS = {  # that a link may lead to; another one is added here once its name was read again
    "coredns.io",
    "datatracker.ietf.org",
    "gateway-api.sigs.k8s.io",
    "github.com",
    "grafana.com",
    "helm.sh",
    "keepachangelog.com",
    "kubernetes.io",
    "openyurt.io",
    "prometheus.io",
    "reproducible-builds.org",
    "semver.org",
    "www.rfc-editor.org",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_within_the_project_leads_to_a_file_and_a_heading(name: str) -> None:
    for link in LINK.findall(FENCED.sub("", DOCUMENTS[name])):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (ROOT / name).parent / path if path else ROOT / name
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target.read_text(encoding="utf-8")), link


def anchors(document: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", document), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_link_out_of_the_project_is_https_to_a_host_that_we_know(name: str) -> None:
    """Whether it leads somewhere there is not asked: tests do without the internet."""
    prose = INLINE_CODE.sub("", FENCED.sub("", DOCUMENTS[name]))
    assert [link for link in EXTERNAL.findall(prose) if not is_well_formed(link)] == []


def is_well_formed(link: str) -> bool:
    parts = urlsplit(link)
    path_is_whole = EXTERNAL_PATH.fullmatch(parts.path) and not link.endswith((".", ","))
    return parts.scheme == "https" and parts.netloc in HOSTS and bool(path_is_whole)


@pytest.mark.parametrize(
    ("link", "is_good"),
    [
        ("https://kubernetes.io/docs/concepts/services-networking/#headless-services", True),
        ("https://semver.org", True),
        ("http://kubernetes.io/docs", False),
        ("htps://kubernetes.io/docs", False),
        ("https://kubernets.io/docs", False),
        ("https://kubernetes.io:443/docs", False),
        ("https://kubernetes.io//docs", False),
        ("https://kubernetes.io/docs.", False),
    ],
)
def test_a_link_with_a_slip_is_seen(link: str, is_good: bool) -> None:
    (found,) = EXTERNAL.findall(f"as in [this]({link}) one")
    assert is_well_formed(found) == is_good


def indexed() -> set[str]:
    links = LINK.findall(DOCUMENTS["docs/README.md"])
    return {str((ROOT / "docs" / link).resolve().relative_to(ROOT)) for link in links}


def test_every_document_is_in_the_index() -> None:
    assert DOCUMENTS.keys() - indexed() == {"README.md", "docs/README.md"}


def test_the_navigation_of_the_site_has_every_document_of_the_index_and_no_other() -> None:
    navigation = NAVIGATION.findall((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    assert len(navigation) == len(set(navigation))
    assert set(navigation) == {name for name in indexed() if name.endswith(".md")} | {"README.md", "docs/README.md"}
