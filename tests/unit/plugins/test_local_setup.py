"""The options of `local`."""

from tests.support.corefile_settings import block_problem, only_block


def test_local_may_say_the_default_only() -> None:
    assert only_block("local {\n localhost_prefix on\n}").settings.get("local")
    assert block_problem("local {\n localhost_prefix off\n}") == (
        "Corefile:3: CoreDNS has 'localhost_prefix off', topodns does not"
    )
