"""Names of Nodes that do not exist, with the known name that may be meant."""

from topodns.cluster.unknown_names import MAX_SIMILAR, UnknownNames, nearest_steps, similar_steps
from topodns.time_slices import do_at_once

KNOWN = ["worker-1", "worker-2", "control"]


def clause(name: str, nodes: UnknownNames | None = None) -> str:
    return do_at_once((nodes or UnknownNames(lambda: KNOWN)).clause_steps(name))


def test_the_node_that_may_be_meant_is_named() -> None:
    assert clause("wroker-1") == "there is no Node wroker-1 (worker-1?)"


def test_a_name_in_capital_letters_is_the_one_in_small_ones() -> None:
    assert clause("Worker-1") == "there is no Node Worker-1 (worker-1?)"


def test_of_numbered_nodes_another_number_is_not_what_was_meant() -> None:
    assert clause("worker-3") == "there is no Node worker-3"


def test_a_name_like_none_is_said_to_be_unknown() -> None:
    assert clause("somewhere-else") == "there is no Node somewhere-else"


def test_similar_names_are_looked_for_a_few_times_only() -> None:
    nodes = UnknownNames(lambda: ["worker"])
    names = [f"wor{'x' * count}ker" for count in range(1, MAX_SIMILAR + 1)]
    first, *_ = [clause(name, nodes) for name in names]
    assert first == "there is no Node worxker (worker?)"
    assert clause("workers", nodes) == "there is no Node workers"
    nodes.keep_only(names[:1])
    assert clause("workers", nodes) == "there is no Node workers (worker?)", "once others are no longer named"
    assert clause("worxker", nodes) == "there is no Node worxker (worker?)"


def test_a_similar_node_is_found_among_thousands_in_short_steps() -> None:
    names = [f"node-{n:04}" for n in range(5000)]
    steps = similar_steps("node-49990", names)
    assert sum(1 for _ in steps) == 250
    assert do_at_once(similar_steps("node-49990", names)) == "node-4999"
    search = UnknownNames(lambda: names).clause_steps("nod-4999")
    assert sum(1 for _ in search) > 5, "also the digits of thousands are compared in several steps"


def test_of_several_nodes_that_are_equally_similar_all_are_named() -> None:
    assert do_at_once(nearest_steps("node-bl", ["node-b2", "node-a1", "node-b1"])) == ["node-b2", "node-b1"]
    assert do_at_once(nearest_steps("worker1", KNOWN)) == ["worker-1"], "and one alone that is nearer than others"
    assert do_at_once(nearest_steps("somewhere-else", KNOWN)) == []
