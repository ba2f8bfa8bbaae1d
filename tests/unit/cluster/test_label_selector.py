"""Label selectors: the label sets that they match, and refusals."""

import pytest

from topodns.cluster.label_selector import BadSelector, Selector, parse_selector

WEB = {"app": "web", "tier": "front", "topology.kubernetes.io/zone": "a", "empty": ""}

MATCHING = [
    "",
    "   ",
    "app=web",
    "app==web",
    "app = web",
    "app=web,tier=front",
    " app = web , tier = front ",
    "app!=db",
    "absent!=db",
    "app in (db,web)",
    "app in ( db , web )",
    "app in (web)",
    "app notin (db,cache)",
    "absent notin (db)",
    "app",
    "!absent",
    "! absent",
    "topology.kubernetes.io/zone=a",
    "topology.kubernetes.io/zone in (a,b),app,!absent,tier!=back",
    "empty=",
    "empty=,app=web",
    "empty in (,x)",
    "empty",
    "app!=",
]

NOT_MATCHING = [
    "app=db",
    "app=Web",
    "App=web",
    "app!=web",
    "app=web,tier=back",
    "app in (db,cache)",
    "absent in (web)",
    "app notin (web)",
    "absent",
    "!app",
    "absent=",
    "zone=a",
    "empty notin ()",
]


@pytest.mark.parametrize("text", MATCHING)
def test_a_selector_matches_labels_that_meet_every_requirement(text: str) -> None:
    assert parse_selector(text).matches(WEB)


@pytest.mark.parametrize("text", NOT_MATCHING)
def test_a_selector_does_not_match_labels_that_miss_one_requirement(text: str) -> None:
    assert not parse_selector(text).matches(WEB)


REFUSED = {
    "a comma at the end": ("app=web,", "found the end, expected a label key"),
    "two commas": ("app,,tier", 'found ",", expected a label key'),
    "no comma": ("app=web tier=front", 'found "tier", expected ","'),
    "a value without a key": ("=web", 'found "=", expected a label key'),
    "two keys": ("app tier", 'found "tier" after "app", expected one of = == != in notin'),
    "a list without parentheses": ("app in web", r'found "web", expected "\("'),
    "a list without an end": ("app in (web", r'found the end, expected "," or "\)"'),
    "an order": ("cpu>5", 'found ">" after "cpu", expected one of = == != in notin'),
    "negation of a requirement": ("!app=web", 'found "=", expected ","'),
    "a key that starts with a dash": ("-app=web", '"-app" is no label key'),
    "a key with two slashes": ("a/b/c=web", '"a/b/c" is no label key'),
    "a key with an empty prefix": ("/app", '"/app" is no label key'),
    "a key with an upper-case prefix": ("Example.com/app", '"Example.com/app" is no label key'),
    "a key that is too long": ("a" * 64, '"a+" is no label key'),
    "a value with a slash": ("app=a/b", '"a/b" is no label value'),
    "a value that is too long": ("app=" + "a" * 64, '"a+" is no label value'),
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.values(), ids=REFUSED.keys())
def test_text_that_is_no_selector_is_refused_with_the_text_found(text: str, problem: str) -> None:
    with pytest.raises(BadSelector, match=problem):
        parse_selector(text)


def test_a_selector_keeps_its_text_for_messages() -> None:
    assert parse_selector("app in (a,b)").text == "app in (a,b)"


def test_a_missing_selector_matches_everything() -> None:
    assert Selector().matches({})
    assert Selector().matches(WEB)
