"""The site, built once for all tests of it."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from release.site import build_site
from tests.site.pages import Site
from tests.support.suite_skips import skip_all, those_of

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if find_spec("mkdocs") is None and (those := those_of(HERE, items)):
        skip_all(config, items, those, "NO SITE: mkdocs is not installed; `make test-site` installs it")


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(build_site(tmp_path_factory.mktemp("site") / "site").parent)
