"""The one error of everything that a person types or a file says: what is wrong, and what to do next."""


class Invalid(ValueError):  # noqa: N818, the word of the whole project
    """A refused input. Prints as two lines, as the program's errors do."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem, remedy)
        self.problem = problem
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.problem}\n  {self.remedy}"


def printable(text: str) -> str:
    """`text` cut to a length that fits a message, with control characters escaped."""
    longest = 60
    cut = text[:longest] + ("…" if len(text) > longest else "")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)
