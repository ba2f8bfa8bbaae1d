"""The exception for a failed API server request. A module of its own, so that importing it loads no API client."""

from topodns.logs import one_line


class ApiError(Exception):
    """The API server refused or could not be reached. `status` is 0 where no response came.

    Its text is one short printable line even where `problem` comes from the server: it goes to the log and to /ready.
    """

    def __init__(self, status: int, problem: str, retry_after: float | None = None) -> None:
        super().__init__(one_line(f"{status}: {problem}" if status else problem))
        self.status = status
        self.retry_after = retry_after  # seconds, at least 0, from Retry-After or the Status; None if absent
