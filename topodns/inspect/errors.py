"""The one error of questions about the state: whoever asks, a browser or a command, gets its sentence."""


class Refused(ValueError):
    """A question without an answer, as it makes no sense or too many wait: a sentence for whoever asks.

    `status`: that of an HTTP reply.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status
