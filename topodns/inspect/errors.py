"""The one error of questions about the state; a browser or a command shows its sentence."""


class Refused(ValueError):
    """A question without an answer, because it is invalid or too many wait. The text is a sentence for the user.

    `status`: that of an HTTP reply.
    """

    def __init__(self, text: str, status: int = 400) -> None:
        super().__init__(text)
        self.status = status
