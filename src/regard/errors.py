"""The error class for faults of the user: wrong settings, data, files or arguments."""


class InputError(ValueError):
    """A fault in what the user gave: settings, data, a file, a folder or an argument.

    Its message is one line: where, what is wrong, what to do. The command line shows this line and
    exits with 1. Every other exception is a bug of regard, and is reported as one.

    >>> import regard
    >>> try:
    ...     regard.load_settings("multi30k-transformer", ["train.steps=none"])
    ... except regard.InputError as error:
    ...     print(error)
    command line: train.steps: expected a whole number, not "none"
    """

    def __str__(self) -> str:
        """Return the message on one line, even if it quotes a name with line breaks."""
        return " ".join(super().__str__().splitlines())
