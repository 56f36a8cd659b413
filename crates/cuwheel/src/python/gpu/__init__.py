"""Runs GPU tests against an installed wheel, on the machine with the GPU: what `test-gpu` and a bundle's `run` share.

Only the standard library is used, and pytest in the processes that run tests. Nothing here builds or fetches anything.
"""

SCHEMA = 1
"""The version of the report; counted up when a field changes its meaning or goes."""

NEEDS = "cuwheel: "
"""How the reason of a skip begins that comes from a marker."""


class Problem(Exception):
    """A failure that a user can mend, with its cause, its remedy and the exit code that says whose turn it is."""

    def __init__(self, code, message, remedy, details=(), exit_code=3):
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.details = list(details)
        self.exit_code = exit_code

    def document(self):
        """The problem as it stands in the report."""
        names = ("code", "message", "remedy", "details", "exit_code")
        return {name: getattr(self, name) for name in names}

    def text(self):
        """The problem as it is shown to a person."""
        lines = [f"error: {self.message}", *(f"  {detail}" for detail in self.details), f"fix: {self.remedy}"]
        return "\n".join(lines) + "\n"
