"""`metadata`, whose zones are read and publish nothing."""

from tests.support.corefile_settings import block_problem, only_block


def test_metadata_may_have_zones() -> None:
    assert only_block("metadata").settings.get("metadata")
    assert only_block("metadata example.org").settings.get("metadata")
    assert "found no zone's name: empty label in 'a..b'" in block_problem("metadata a..b")
