"""Attributes of plugins."""

from tests.support.corefile_settings import block_problem
from topodns.plugins.order import ORDER
from topodns.plugins.plugin import FastPath, Reads, load


def test_only_a_plugin_of_the_chain_has_something_to_install() -> None:
    assert [name for name in ORDER if load(name).setup is not None and not load(name).in_chain] == []


def test_a_plugin_whose_required_directive_is_missing_is_refused() -> None:
    for name in ORDER:
        for required in load(name).requires:
            assert block_problem(name).startswith(f"Corefile:2: found '{name}' in a server block without '{required}'")


def test_a_plugin_that_the_fast_path_relays_past_reads_no_more_than_the_question() -> None:
    for name in ORDER:
        if load(name).fast_path is not FastPath.BARRED:
            assert load(name).reads is Reads.QUESTION, name
