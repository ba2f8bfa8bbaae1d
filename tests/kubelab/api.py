"""The API server as the lab's administrator sees it from the host. Knows paths, no kinds."""

import http.client
import json
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """`status` is 0 where there was no answer. `body` is an object, or text that is none."""

    status: int
    body: Any

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


class Api:
    """The cluster of a kubeconfig, by a token."""

    def __init__(self, kubeconfig: Path, timeout: float = 10) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        self._port = int(cluster["server"].rpartition(":")[2])
        self._token = config["users"][0]["user"]["token"]
        self._context = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._timeout = timeout

    def call(self, method: str, path: str, body: Object | None = None, kind: str = "application/json") -> Answer:
        connection = http.client.HTTPSConnection("127.0.0.1", self._port, timeout=self._timeout, context=self._context)
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), headers)
            response = connection.getresponse()
            data = response.read()
        except (OSError, http.client.HTTPException) as problem:
            return Answer(0, str(problem))
        finally:
            connection.close()
        return Answer(response.status, json.loads(data) if data[:1] == b"{" else data.decode(errors="replace"))
