"""What an API server's refusal, or its absence, is raised as. Alone here: a program without a cluster names it, too."""

from topodns.edge.foreign_text import one_line


class ApiError(Exception):
    """The API server refused or could not be reached. `status` is 0 where no response came.

    Its text is one short printable line, whosever words `problem` is: it goes to the log and to /ready.
    """

    def __init__(self, status: int, problem: str, retry_after: float | None = None) -> None:
        super().__init__(one_line(f"{status}: {problem}" if status else problem))
        self.status = status
        self.retry_after = retry_after  # seconds that the server asked us to wait, at least 0
