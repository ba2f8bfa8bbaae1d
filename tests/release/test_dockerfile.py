"""The Dockerfile, for those who have docker, says what the image that is assembled here is."""

import json
import re
from collections.abc import Sequence
from typing import Final

import pytest

from release.image import BASE, DEMO, ENVIRONMENT, HOME, LABELS, LINKS, PACKAGES, PYTHON, SUITE, USER, labels
from release.sbom import IMAGE_LOCK, IMAGE_PYTHON, LOCK
from release.source import ROOT

Instruction = tuple[str, str]


def instructions() -> list[list[Instruction]]:
    """By stage: each instruction and what follows it on its line, continued lines put together."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    lines = filter(None, re.sub(r"\\\n", " ", text).splitlines())
    stages: list[list[Instruction]] = [[]]
    for name, _, rest in (line.partition(" ") for line in lines):
        if name == "FROM":
            stages.append([])
        stages[-1].append((name, re.sub(r" +", " ", rest.strip())))
    return stages


BEFORE, MADE, FINAL = instructions()
INSTALL: Final = re.compile(r"apt-get install --yes --no-install-recommends ([\w. -]+?) ?(?:&&|;|$)")


def said(stage: Sequence[Instruction], name: str) -> list[str]:
    return [rest for each, rest in stage if each == name]


def all_said(stage: Sequence[Instruction], name: str) -> str:
    return "\n".join(said(stage, name))


def test_the_base_can_be_chosen_and_is_the_same_for_both_stages() -> None:
    assert said(BEFORE, "ARG") == [f"BASE=python:{IMAGE_PYTHON}-slim-{SUITE}"]
    assert [said(stage, "FROM") for stage in (MADE, FINAL)] == [["${BASE} AS made"], ["${BASE}"]]


def test_the_same_packages() -> None:
    installed = {name for names in INSTALL.findall(all_said(FINAL, "RUN")) for name in names.split()}
    assert installed == set(PACKAGES)
    assert set(BASE) < installed


def test_libraries_come_from_the_lock_by_hash_as_wheels_and_nothing_of_them_is_deleted() -> None:
    install, finish = said(MADE, "RUN")[2:]
    assert install.endswith("--require-hashes --only-binary :all: -r /src/${LOCK}")
    assert "site-packages && PYTHONHASHSEED=0" in finish
    assert re.findall(r"cd (\S+) && find", finish) == [f"{HOME}/bin"]


def test_the_lock_is_that_of_the_image_for_pods_unless_another_is_chosen() -> None:
    assert said(MADE, "ARG") == [f"LOCK={IMAGE_LOCK.name}"]
    assert f"--build-arg LOCK={LOCK.name}" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_user_is_the_same_as_in_the_assembled_image_and_numeric() -> None:
    assert said(FINAL, "USER") == [USER]
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", USER)


def test_the_same_entry_point_directory_ports_and_environment() -> None:
    assert json.loads(all_said(FINAL, "ENTRYPOINT")) == ["/topodns"]
    assert said(FINAL, "WORKDIR") == ["/"]
    assert said(FINAL, "EXPOSE") == ["53/tcp 53/udp"]
    assert said(FINAL, "ENV") == [" ".join(ENVIRONMENT)]


def test_the_same_names_of_the_program() -> None:
    found = {link: target for target, link in re.findall(r"ln -s (\S+) (\S+)", all_said(FINAL, "RUN"))}
    assert found == {link: f"{HOME}/bin/{name}" for link, name in LINKS.items()}


def test_the_same_example() -> None:
    assert said(FINAL, "COPY") == [f"--from=made {HOME} {HOME}", " ".join(DEMO)]


def test_the_same_labels() -> None:
    found = dict(re.findall(r'([\w.]+)="([^"]*)"', all_said(FINAL, "LABEL")))
    assert found.keys() == labels().keys()
    assert {key: text for key, text in found.items() if "$" not in text} == LABELS
    arguments = {text.strip("${}") for text in found.values() if "$" in text}
    assert set(said(FINAL, "ARG")) == arguments == {"VERSION", "REVISION", "CREATED"}


def test_the_same_interpreter_may_have_port_53() -> None:
    assert f"setcap cap_net_bind_service=+ep {PYTHON}" in all_said(MADE, "RUN")


@pytest.mark.parametrize("stage", [MADE, FINAL], ids=["made", "final"])
def test_nothing_is_fetched_but_by_apt_and_pip(stage: Sequence[Instruction]) -> None:
    assert said(stage, "ADD") == []
    assert not re.search(r"\b(curl|wget|git)\b", all_said(stage, "RUN"))


def test_docker_gets_the_copied_files_of_the_dockerfile_and_nothing_else() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    copied = {name for rest in (*said(MADE, "COPY"), *said(FINAL, "COPY")[1:]) for name in rest.split()[:-1]}
    copied = copied - {"${LOCK}"} | {LOCK.name, IMAGE_LOCK.name}
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == copied
