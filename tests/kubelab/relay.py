"""relay.py FD HOST PORT : every connection to the inherited listener becomes one to HOST:PORT. The listener is a
socket of the host; this process is in a lab's network namespace. That is the whole way in, and there is none out.
"""

import asyncio
import socket
import sys
from asyncio import StreamReader, StreamWriter
from contextlib import suppress


async def copy(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    with suppress(OSError):
        writer.close()


async def relay(listener: socket.socket, host: str, port: int) -> None:
    async def serve(reader: StreamReader, writer: StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection(host, port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    server = await asyncio.start_server(serve, sock=listener)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(relay(socket.socket(fileno=int(sys.argv[1])), sys.argv[2], int(sys.argv[3])))
