"""A server whose API server has been edited at random answers as one that is started anew on what there is then."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Final

import pytest

from tests.differential.asking import ask_all
from tests.differential.mirroring import as_slices
from tests.differential.names import existing
from tests.differential.place import Place
from tests.differential.questions import Question, each_of
from tests.differential.random_world import furnish
from tests.differential.replies import Reply, read_reply
from tests.support.api_objects import Object, namespace, pod
from tests.support.coredns import is_ready
from tests.support.fake_api.server import FakeApi, running
from tests.support.server_process import Server, own_address, serving, until

SEEDS: Final = (1, 2, 3)
ROUNDS: Final = 4  # of edits; before each of them all is asked, so that answers are cached
EDITS: Final = 60  # of a round
SERVICES: Final = 12
SETTLED: Final = 20.0  # seconds that a server has to take the last edits
COREFILE: Final = """
. {
    bind HERE
    ready HERE:8181
    bufsize 4096
    k8s_external k8s.example.org {
        headless
    }
    kubernetes cluster.local in-addr.arpa ip6.arpa clusterset.local {
        endpoint API
        pods verified
        endpoint_pod_names
        multicluster clusterset.local
    }
}
"""

Key = tuple[str, str, str]


@pytest.mark.parametrize("seed", SEEDS)
def test_after_random_edits_each_answer_is_that_of_a_server_started_anew(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    world = _objects(random)
    seen = dict(world)
    with ExitStack() as stack:
        api = stack.enter_context(running(list(world.values()), own_address()))
        live = _serving(stack, tmp_path / "live", api)
        for _ in range(ROUNDS):
            _answers(live, _questions(seen))
            for _ in range(EDITS):
                _edit(world, api, random)
                seen |= world
        questions = _questions(seen)
        anew = _answers(_serving(stack, tmp_path / "anew", api), questions)
        differing = questions

        def is_settled() -> bool:
            nonlocal differing
            found = _answers(live, differing)
            differing = [one for one in differing if found[one] != anew[one]]
            return not differing

        until(is_settled, "the answers of a server that is started anew", SETTLED)


def _serving(stack: ExitStack, directory: Path, api: FakeApi) -> Server:
    directory.mkdir()
    server = stack.enter_context(serving(directory, COREFILE.replace("API", api.url)))
    until(lambda: is_ready(server), "ready")
    return server


def _questions(objects: Mapping[Key, Object]) -> list[Question]:
    names = existing(list(objects.values()))
    sorts = ("services", "ports", "endpoints", "pods", "reverse", "external", "imports")
    return list(each_of({sort: names[sort] for sort in sorts}))


def _answers(server: Server, questions: Sequence[Question]) -> dict[Question, Reply | None]:
    replies = ask_all((server.address, server.port), questions)
    return {one: read_reply(reply) if reply else None for one, reply in zip(questions, replies, strict=True)}


def _objects(random: Random) -> dict[Key, Object]:
    found: list[Object] = []
    for number, name in enumerate(("red", "blue"), 1):
        place = Place(name, number)
        furnish(place, random, SERVICES)
        pods = [pod(each, f"10.{number}.200.{at}", "n1", name) for at, each in enumerate(("plain", "other"), 1)]
        found += [namespace(name), *place.objects, *pods]
    return {_key(one): one for one in as_slices(found)}


def _edit(world: dict[Key, Object], api: FakeApi, random: Random) -> None:
    """Delete an object, or put one in another version: one of another world, or with its parts changed."""
    key = random.choice(sorted(world))
    if key[0] != "Namespace" and random.random() < 0.2:
        api.delete(world.pop(key))
        return
    if random.random() < 0.3:
        others = _objects(random)
        changed = others[random.choice(sorted(others))]
    else:
        changed = _changed(world[key], random)
    world[_key(changed)] = changed
    api.put(changed)


def _changed(value: Object, random: Random) -> Object:
    """The object with an endpoint or a port less, or an endpoint that is ready or not."""
    changed = dict(value)
    for field in ("endpoints", "ports"):
        if random.random() < 0.5 and changed.get(field):
            at = random.randrange(len(changed[field]))
            changed[field] = [*changed[field][:at], *changed[field][at + 1 :]]
    if endpoints := changed.get("endpoints"):
        at = random.randrange(len(endpoints))
        turned = {**endpoints[at], "conditions": {"ready": random.choice((True, False))}}
        changed["endpoints"] = [*endpoints[:at], turned, *endpoints[at + 1 :]]
    if random.random() < 0.5 and changed.get("spec", {}).get("ports"):
        changed["spec"] = {**changed["spec"], "ports": changed["spec"]["ports"][1:]}
    return changed


def _key(value: Object) -> Key:
    metadata = value["metadata"]
    return value["kind"], metadata.get("namespace", ""), metadata["name"]
