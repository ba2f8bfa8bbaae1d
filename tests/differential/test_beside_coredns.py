"""Beside CoreDNS, asked the same thousands of questions: what differs is meant, and listed with its reason."""

from collections import Counter
from collections.abc import Sequence

import pytest

from tests.differential.comparison import Case
from tests.differential.differences import DIFFERENCES, unexplained
from tests.differential.trial import COREFILES, Trials

ENOUGH = 20_000
SHOWN = 5


@pytest.mark.parametrize("title", COREFILES)
def test_every_reply_is_that_of_coredns_but_for_known_differences(trials: Trials, title: str) -> None:
    unknown = [case for case in trials.cases(title) if unexplained(case)]
    assert not unknown, f"{len(unknown)} differ:\n" + "\n".join(map(str, unknown[:SHOWN]))


def test_every_known_difference_is_still_one(everything: Sequence[Case]) -> None:
    shown = Counter(one.name for case in everything for one in DIFFERENCES if one.explains(case))
    obsolete = [one.name for one in DIFFERENCES if not shown[one.name]]
    assert obsolete == [], f"no question shows them any more; others: {shown}"


def test_enough_is_asked_of_every_sort(everything: Sequence[Case]) -> None:
    assert len(everything) >= ENOUGH
    answered = sum(case.theirs is not None and bool(case.theirs.answer) for case in everything)
    assert answered > ENOUGH // 10, "a comparison of refusals says little"
    rcodes = Counter(case.theirs.rcode for case in everything if case.theirs is not None)
    assert rcodes.keys() >= {0, 2, 3, 4, 5, 16}
