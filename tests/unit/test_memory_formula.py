"""The formulas that `make bench-memory` fits to its measurements."""

import pytest

from bench.memory.fit import fit


def test_a_formula_that_is_exact_is_found() -> None:
    measured = [
        ({"Nodes": nodes, "Pods": pods}, 55.0 + 0.002 * nodes + 0.0007 * pods)
        for nodes, pods in ((0, 0), (5_000, 0), (1_000, 150_000), (10, 20))
    ]
    formula = fit(("Nodes", "Pods"), measured)
    assert formula.base == pytest.approx(55.0)
    assert formula.each == pytest.approx({"Nodes": 0.002, "Pods": 0.0007})
    assert formula.of({"Pods": 10_000}) == pytest.approx(62.0)


def test_an_outlier_leaves_the_formula_between_the_measurements() -> None:
    formula = fit(("Pods",), [({}, 50.0), ({}, 52.0), ({"Pods": 10}, 61.0)])
    assert formula.base == pytest.approx(51.0)
    assert formula.each == pytest.approx({"Pods": 1.0})


def test_things_that_only_grow_together_cannot_be_separated() -> None:
    with pytest.raises(ValueError, match="differ in each thing by itself"):
        fit(("Services", "slices"), [({"Services": n, "slices": n}, 50.0 + n) for n in (1, 2, 3)])
