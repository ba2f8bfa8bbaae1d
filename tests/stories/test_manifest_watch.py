"""An edit of a manifest is soon in the cluster state, however its file is replaced. Real files and notifications."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path

import pytest

from tests.support.event_loops import PATIENCE, eventually
from topodns.cluster.model import Change, Replaced
from topodns.files.watch import watch_files
from topodns.kube.manifests.source import ManifestSource


def node(name: str) -> str:
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: {name}}}\n"


class Cluster:
    """The names of the Nodes that a running source has published."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.nodes: set[str] = set()
        self.source = ManifestSource([str(path) for path in paths], self._take)

    def _take(self, change: Change) -> tuple[()]:
        assert isinstance(change, Replaced)
        if change.kind == "Node":
            self.nodes = {value.key.name for value in change.objects}
        return ()

    async def has(self, *names: str) -> None:
        await eventually(lambda: self.nodes == set(names))


@asynccontextmanager
async def watching(*paths: Path) -> AsyncIterator[Cluster]:
    cluster = Cluster(paths)
    cluster.source.load()
    async with aclosing(watch_files(cluster.source.paths)) as changes:
        task = asyncio.create_task(cluster.source.run(changes), name="manifests")
        try:
            yield cluster
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def in_place(file: Path) -> None:
    file.write_text(node("new"))


def by_rename(file: Path) -> None:
    draft = file.with_name(".draft")
    draft.write_text(node("new"))
    draft.replace(file)


def by_removing_it_first(file: Path) -> None:
    file.unlink()
    file.write_text(node("new"))


@pytest.mark.parametrize("edit", [in_place, by_rename, by_removing_it_first])
@pytest.mark.parametrize("named", ["file", "directory"])
async def test_an_edit_arrives_however_the_file_is_replaced(
    tmp_path: Path, edit: Callable[[Path], None], named: str
) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(node("old"))
    async with watching(file if named == "file" else tmp_path) as cluster:
        assert cluster.nodes == {"old"}
        for _ in range(2):  # the second edit shows that the watch outlived the first
            edit(file)
            await cluster.has("new")
            file.write_text(node("old"))
            await cluster.has("old")


async def test_files_that_come_and_go_in_a_directory_are_followed(tmp_path: Path) -> None:
    async with watching(tmp_path) as cluster:
        (tmp_path / "a.yaml").write_text(node("a"))
        await cluster.has("a")
        (tmp_path / "b.yaml").write_text(node("b"))
        await cluster.has("a", "b")
        (tmp_path / "a.yaml").unlink()
        await cluster.has("b")


async def test_half_a_file_keeps_the_last_good_state_until_it_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text(node("old"))
    async with watching(file) as cluster:
        file.write_text("apiVersion: v1\nkind: [")
        await eventually(lambda: cluster.source.files_bad == 1)
        assert cluster.nodes == {"old"}
        assert cluster.source.problems == (f"{file}:2: did not find expected node content; its last good state stays",)
        file.write_text(node("new"))
        await cluster.has("new")
        assert cluster.source.files_bad == 0


async def test_a_configmap_volume_is_followed_through_its_links(tmp_path: Path) -> None:
    """The kubelet writes a new directory, points ..data_tmp at it, and renames that to ..data."""

    def publish(version: str, name: str) -> None:
        (tmp_path / version).mkdir()
        (tmp_path / version / "nodes.yaml").write_text(node(name))
        (tmp_path / "..data_tmp").symlink_to(version)
        (tmp_path / "..data_tmp").replace(tmp_path / "..data")

    publish("..v1", "one")
    (tmp_path / "nodes.yaml").symlink_to("..data/nodes.yaml")
    for path in (tmp_path, tmp_path / "nodes.yaml"):
        async with watching(path) as cluster:
            assert cluster.nodes == {"one"}
            publish("..v2", "two")
            await cluster.has("two")
            shutil.rmtree(tmp_path / "..v1")
            publish("..v1", "one")
            await cluster.has("one")
            shutil.rmtree(tmp_path / "..v2")


async def test_a_directory_may_be_missing_at_first_and_be_replaced_later(tmp_path: Path) -> None:
    directory = tmp_path / "deep" / "manifests"
    async with watching(directory) as cluster:
        assert cluster.source.files_bad == 1
        directory.mkdir(parents=True)
        (directory / "a.yaml").write_text(node("a"))
        await cluster.has("a")
        shutil.rmtree(directory)
        await eventually(lambda: cluster.source.files_bad == 1)
        assert cluster.nodes == {"a"}
        directory.mkdir()
        (directory / "b.yaml").write_text(node("b"))
        await cluster.has("b")


async def notified(paths: Sequence[Path], change: Callable[[], object]) -> frozenset[str]:
    """The paths that the first notification after `change` names. The watch has begun once it looks unasked."""
    async with aclosing(watch_files([str(path) for path in paths])) as changes, asyncio.timeout(PATIENCE):
        await anext(changes)
        change()
        async for named in changes:
            if named:
                return named
    raise AssertionError("the watch ended")


def from_here(path: Path) -> Path:
    """The path, relative to the working directory."""
    return Path(os.path.relpath(path))


async def test_a_notification_names_the_paths_as_they_were_given_and_no_others(tmp_path: Path) -> None:
    file, other = tmp_path / "a.yaml", tmp_path / "b.yaml"
    relative = from_here(file)
    assert await notified([file, other], lambda: file.write_text("a")) == {str(file)}
    assert await notified([file, other, tmp_path], lambda: other.write_text("b")) == {str(other), str(tmp_path)}
    assert await notified([relative], lambda: by_rename(file)) == {str(relative)}


async def test_a_change_of_another_file_in_the_directory_is_not_reported(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("a")
    async with aclosing(watch_files([str(file)])) as changes, asyncio.timeout(PATIENCE):
        await anext(changes)
        (tmp_path / "b.yaml").write_text("b")
        assert [await anext(changes) for _ in range(2)] == [frozenset(), frozenset()]


async def test_links_in_a_circle_are_watched_without_following_them_for_ever(tmp_path: Path) -> None:
    one, two = tmp_path / "one.yaml", tmp_path / "two.yaml"
    one.symlink_to(two)
    two.symlink_to(one)

    def mend() -> None:
        two.unlink()
        two.write_text(node("a"))

    assert await notified([one], mend) == {str(one)}


def test_without_notifications_files_are_still_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_watch_left() -> None:
        raise OSError("no watch left")

    async def story() -> None:
        async with watching(tmp_path) as cluster:
            (tmp_path / "a.yaml").write_text(node("a"))
            await cluster.has("a")

    monkeypatch.setattr("topodns.files.watch.Inotify", no_watch_left)
    asyncio.run(story())
    assert f"cannot watch {tmp_path}: no watch left; looking every 0.5 s instead" in caplog.messages
