"""The errors a user may see: one sentence that names the thing and the next step."""


class EnsueError(Exception):
    """Bad input or usage: printed as one sentence, exit code 2."""


class RunFailed(EnsueError):
    """The work began and could not be finished: printed as one sentence, exit code 1."""
