"""The number of sockets of `multisocket`."""

from tests.support.corefile_settings import block_problem, only_block


def test_without_a_number_the_processors_decide() -> None:
    assert only_block("multisocket").settings.get("multisocket") == 0
    assert only_block("multisocket 4").settings.get("multisocket") == 4


def test_no_socket_at_all_is_refused() -> None:
    assert "'multisocket' has '0', expected a whole number from 1 to 1024" in block_problem("multisocket 0")
