"""`loop`, which has no argument."""

from tests.support.corefile_settings import block_problem, only_block


def test_loop_is_only_its_name() -> None:
    assert only_block("loop").settings.get("loop")
    assert "'loop' has the arguments '5s', expected none" in block_problem("loop 5s")
