"""Responses to list requests: pages of a snapshot, made while they are sent."""

import asyncio
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from tests.support.fake_api.exchange import COMPRESS_FROM, Response, encoded, refuse
from tests.support.fake_api.options import ReadOptions
from tests.support.fake_api.resources import Object, Resource
from tests.support.fake_api.statuses import CONTINUE_EXPIRED, Refusal, too_new
from tests.support.fake_api.store import Snapshot, Store, Stored

PIECE: Final = COMPRESS_FROM + 32 * 1024  # octets: about as much is made before some of it is sent


async def respond_list(store: Store, options: ReadOptions, response: Response, torn: bool) -> None:
    """A page of the list, or why there is none. A `torn` one ends in the middle of an object, with the connection."""
    page = _page(store, options)
    if isinstance(page, Refusal):
        await refuse(response, page)
        return
    snapshot, start = page
    end = start + options.limit if options.limit and options.revision != 0 else len(snapshot.objects)
    metadata: Object = {"resourceVersion": str(snapshot.revision)}
    if end < len(snapshot.objects):
        metadata["continue"] = store.keep_page(snapshot, end)
        metadata["remainingItemCount"] = len(snapshot.objects) - end
    objects = snapshot.objects[start:end]
    text = _list_text(store.resource, metadata, objects)
    if torn:
        text = chain(
            _list_text(store.resource, metadata, objects[: len(objects) // 2], whole=False), (b'{"metadata":{"',)
        )
    await send_pieces(response, text)
    if torn:
        response.abort()
        return
    await response.end()


def _page(store: Store, options: ReadOptions) -> tuple[Snapshot, int] | Refusal:
    if options.token:
        return store.page(options.token) or CONTINUE_EXPIRED
    if options.revision is not None and options.revision > store.revision:
        return too_new(options.revision, store.revision)
    return store.snapshot(options.selection, newest=options.revision is None), 0


def _list_text(resource: Resource, metadata: Object, objects: Sequence[Stored], whole: bool = True) -> Iterator[bytes]:
    """Of a custom resource with sorted keys, metadata last, as the API server writes objects without a Go type."""
    kind, about = f"{resource.kind}List", encoded(metadata)
    named = b'"apiVersion":"%b",' % resource.api_version.encode()
    if resource.custom:
        yield b'{%b"items":[' % named
    else:
        yield b'{"kind":"%b",%b"metadata":%b,"items":[' % (kind.encode(), named, about)
    yield from _items(resource, objects)
    if whole and resource.custom:
        yield b'],"kind":"%b","metadata":%b}\n' % (kind.encode(), about)
    elif whole:
        yield b"]}\n"


def _items(resource: Resource, objects: Sequence[Stored]) -> Iterator[bytes]:
    """The objects with commas between them, without kind and apiVersion unless they are custom ones."""
    typed = b'{"kind":"%b","apiVersion":"%b",' % (resource.kind.encode(), resource.api_version.encode())
    comma = b""
    for one in objects:
        body = one.body()
        assert body.startswith(typed)
        yield comma
        yield body if resource.custom else b"{" + body[len(typed) :]
        comma = b","


async def send_pieces(response: Response, texts: Iterator[bytes], compressible: bool = True) -> None:
    """Send texts in pieces of a good size, as they are made; begins the response, does not end it."""
    first = True
    for piece in _pieces(texts):
        if first:
            await response.begin(len(piece) if compressible else 0)
            first = False
        await response.write(piece)
        await asyncio.sleep(0)  # others have their turn between two pieces, however fast the client reads


def _pieces(texts: Iterator[bytes]) -> Iterator[bytes]:
    gathered, size = [], 0
    for text in texts:
        gathered.append(text)
        size += len(text)
        if size >= PIECE:
            yield b"".join(gathered)
            gathered, size = [], 0
    yield b"".join(gathered)
