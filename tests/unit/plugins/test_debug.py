"""`debug`, which has no argument."""

from tests.support.corefile_settings import block_problem, only_block


def test_debug_is_only_its_name() -> None:
    assert only_block("debug").settings.get("debug") is True
    assert "'debug' has the arguments 'on', expected none" in block_problem("debug on")
