"""Manifest files as one cluster, published as changes. Files are real, the source's wake-ups are scripted."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from topodns.cluster.model import Change, Kind, Replaced, Upserted
from topodns.kube.manifests.objects import KINDS
from topodns.kube.manifests.source import ManifestSource

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {namespace: shop, name: %s}\nspec: {clusterIP: %s}\n"


NODE = "apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {rack: '%s'}}\n"


def documents(*texts: str) -> str:
    return "---\n".join(texts)


class Script:
    """Changes of the files and the times when the source looks: run `step`s, each seen by the source once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.emitted: list[Replaced] = []
        self.upserted: list[str] = []
        self.source = ManifestSource([str(directory)], self._take)

    def _take(self, change: Change) -> tuple[()]:
        if isinstance(change, Replaced):
            self.emitted.append(change)
        elif isinstance(change, Upserted):
            self.upserted.append(change.object.key.name)
        return ()

    def write(self, name: str, text: str) -> None:
        (self.directory / name).write_text(text)

    def look(self, named: bool = True) -> dict[Kind, list[str]]:
        """The changes that one occasion makes the source emit: the names of the objects of each kind."""
        self.emitted.clear()
        asyncio.run(self.source.run(self._once(named)))
        return self.kinds()

    def load(self) -> dict[Kind, list[str]]:
        self.emitted.clear()
        self.source.load()
        return self.kinds()

    def kinds(self) -> dict[Kind, list[str]]:
        return {change.kind: [str(value.key.name) for value in change.objects] for change in self.emitted}

    async def _once(self, named: bool) -> AsyncIterator[frozenset[str]]:
        yield frozenset(self.source.paths if named else ())


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


class TestSource:
    def test_loading_replaces_every_kind_even_those_that_have_no_object(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        assert script.load() == {kind: ["n1"] if kind == "Node" else [] for kind in KINDS}

    def test_only_yaml_and_json_files_of_the_directory_itself_count(self, script: Script) -> None:
        for name in ("a.yaml", "b.yml", "c.json", "d.txt", ".e.yaml", "f.yaml~"):
            script.write(name, NODE % (name[:2].strip("."), "r1"))
        script.write("c.json", '{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "c"}}')
        (script.directory / "sub.yaml").mkdir()
        script.write("sub.yaml/g.yaml", NODE % ("g", "r1"))
        assert script.load()["Node"] == ["a", "b", "c"]
        assert script.source.problems == ()

    def test_files_and_directories_can_be_mixed_and_repeated(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.source.paths = [str(script.directory), str(script.directory / "a.yaml")]
        assert script.load()["Node"] == ["n1"]
        assert script.source.problems == ()

    def test_an_edit_replaces_only_the_kinds_that_differ(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.write("b.yaml", SERVICE % ("web", "10.96.0.1"))
        script.load()
        script.write("a.yaml", documents(NODE % ("n1", "r1"), NODE % ("n2", "r1")))
        assert script.look() == {"Node": ["n1", "n2"]}
        script.write("b.yaml", "# moved\n" + SERVICE % ("web", "10.96.0.1"))
        assert script.look() == {}
        assert script.source.reloads == 2

    def test_nothing_is_read_where_nothing_changed(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.load()
        assert (script.look(named=False), script.look(), script.source.reloads) == ({}, {}, 0)

    def test_a_change_without_a_notification_is_seen_by_the_file_s_stat(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.load()
        script.write("a.yaml", NODE % ("another", "r1"))
        assert script.look(named=False) == {"Node": ["another"]}

    def test_a_change_within_one_tick_of_the_file_system_is_seen_if_the_path_is_named(
        self, script: Script, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        looks = os.stat(script.directory / "a.yaml")
        monkeypatch.setattr("topodns.kube.manifests.source.os.stat", lambda file: looks)
        script.load()
        script.write("a.yaml", NODE % ("n2", "r1"))
        assert (script.look(named=False), script.look()) == ({}, {"Node": ["n2"]})

    @pytest.mark.parametrize(
        ("half", "said"),
        [("kind: [\n", "a.yaml:1: did not find"), ("", "a.yaml:1: empty"), ("kind", "a.yaml:1: expected an object")],
        ids=["broken", "truncated", "cut off"],
    )
    def test_a_broken_file_keeps_its_last_good_state_until_it_is_mended(
        self, script: Script, half: str, said: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.load()
        script.write("a.yaml", half)
        script.write("b.yaml", NODE % ("n2", "r1"))
        assert script.look() == {"Node": ["n1", "n2"]}
        assert script.source.files_bad == 1
        assert said in script.source.problems[0]
        assert script.source.problems[0].endswith("; its last good state stays")
        assert caplog.messages == [f"manifests: {script.source.problems[0]}"]
        script.write("a.yaml", NODE % ("n3", "r1"))
        assert script.look() == {"Node": ["n3", "n2"]}
        assert (script.source.files_bad, script.source.problems) == (0, ())

    def test_a_broken_file_that_is_restored_is_good_again(self, script: Script) -> None:
        for text, bad in ((NODE % ("n1", "r1"), 0), ("kind: [", 1), (NODE % ("n1", "r1"), 0)):
            script.write("a.yaml", text)
            script.look()
            assert script.source.files_bad == bad

    def test_an_object_that_becomes_malformed_keeps_its_last_version_until_it_is_mended_or_gone(
        self, script: Script, caplog: pytest.LogCaptureFixture
    ) -> None:
        script.write("0.yaml", "kind: Namespace\nmetadata: {name: shop}\n")
        script.write("a.yaml", documents(SERVICE % ("web", "10.96.0.1"), NODE % ("n1", "r1")))
        script.load()
        script.write("a.yaml", documents(SERVICE % ("web", "nonsense"), NODE % ("n2", "r1")))
        assert script.look() == {"Node": ["n2"]}
        assert script.source.objects_skipped == 1
        (line,) = caplog.messages
        assert "a.yaml:1: skipped Service shop/web: " in line
        assert line.endswith("; its last version stays")
        script.write("a.yaml", NODE % ("n2", "r1"))
        assert (script.look(), script.source.objects_skipped) == ({"Service": []}, 0)

    def test_a_file_that_was_left_empty_is_passed_over_as_by_kubectl(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.write("b.yaml", "")
        script.load()
        assert (script.upserted, script.source.files_bad) == (["n1"], 1)
        os.utime(script.directory / "b.yaml", (0, time.time() - 11))
        assert script.look(named=False)["Node"] == ["n1"]
        assert script.source.files_bad == 0

    def test_a_file_that_was_emptied_keeps_its_objects(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.load()
        script.write("a.yaml", "")
        os.utime(script.directory / "a.yaml", (0, time.time() - 11))
        assert (script.look(), script.source.files_bad) == ({}, 1)

    def test_a_file_that_leaves_the_directory_takes_its_objects_and_problems_along(self, script: Script) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.write("b.yaml", "kind: [")
        script.load()
        (script.directory / "b.yaml").unlink()
        assert (script.look()["Node"], script.source.files_bad) == (["n1"], 0)
        (script.directory / "a.yaml").unlink()
        assert script.look() == {"Node": []}

    def test_a_directory_that_is_gone_keeps_its_state_and_may_come_back(self, tmp_path: Path) -> None:
        script = Script(tmp_path / "manifests")
        script.directory.mkdir()
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.load()
        away = script.directory.rename(tmp_path / "elsewhere")
        assert (script.look(), script.source.files_bad) == ({}, 1)
        assert script.source.problems[0].endswith(
            "a.yaml: cannot be read: No such file or directory; its last good state stays"
        )
        away.rename(script.directory)
        assert (script.look(), script.source.problems) == ({}, ())

    def test_a_path_that_is_missing_at_first_is_said_and_read_when_it_is_there(self, tmp_path: Path) -> None:
        script = Script(tmp_path / "later")
        assert script.load() == {}
        assert script.source.problems == (f"{tmp_path}/later: cannot be read: No such file or directory",)
        script.directory.mkdir()
        script.write("a.yaml", NODE % ("n1", "r1"))
        assert script.look() == {**{kind: [] for kind in KINDS}, "Node": ["n1"]}
        assert not script.source.problems

    def test_a_file_that_was_never_readable_keeps_every_kind_unknown_and_hides_nothing_of_the_others(
        self, script: Script
    ) -> None:
        script.write("a.yaml", NODE % ("n1", "r1"))
        script.write("b.yaml", "kind: [")
        assert (script.load(), script.upserted) == ({}, ["n1"])
        script.write("b.yaml", NODE % ("n2", "r2"))
        assert script.look() == {**{kind: [] for kind in KINDS}, "Node": ["n1", "n2"]}
        script.write("b.yaml", "kind: [")
        assert script.look() == {}

    def test_a_pipe_is_not_waited_for(self, script: Script) -> None:
        os.mkfifo(script.directory / "a.yaml")
        script.load()
        assert script.source.problems[0].endswith("a.yaml: cannot be read: is no regular file")

    def test_problems_are_logged_once_and_counted_for_as_long_as_they_last(
        self, script: Script, caplog: pytest.LogCaptureFixture
    ) -> None:
        script.write("a.yaml", documents(SERVICE % ("web", "nonsense"), NODE % ("n1", "r1")))
        script.write("b.yaml", NODE % ("n1", "r2"))
        script.load()
        script.write("c.yaml", NODE % ("n2", "r1"))
        script.look()
        assert script.source.objects_skipped == 1
        assert len(script.source.problems) == len(caplog.messages) == 2
        assert {record.levelno for record in caplog.records} == {logging.WARNING}
        script.write("a.yaml", NODE % ("n3", "r1"))
        script.look()
        assert script.source.objects_skipped == 0
        assert not script.source.problems

    def test_others_get_their_turn_while_a_long_file_is_read(self, script: Script) -> None:
        script.write("a.yaml", documents(*(NODE % (f"n{number}", "r1") for number in range(200))))
        turns = 0

        async def count_turns() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async def main() -> None:
            counting = asyncio.create_task(count_turns())
            await script.source.run(script._once(True))
            counting.cancel()

        asyncio.run(main())
        assert turns > 5
