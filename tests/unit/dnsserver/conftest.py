"""What tests of random clusters share."""

from collections.abc import Iterator

import pytest

from topodns.cluster import node_index


@pytest.fixture(scope="module")
def pod_cidrs_of_small_clusters_can_be_verified() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(node_index, "MANY", 2)
        patch.setattr(node_index, "TOLERATED", 2)
        yield
