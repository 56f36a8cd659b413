"""Settings and fixtures of the tests that need no GPU.

They import the installed package; nothing here may put the source tree on the path. Modules without `test_` in their name
are helpers, which pytest lets the tests import by name.
"""

import pytest
import upstream
from hypothesis import settings

# The same examples in every run: a failure is never a matter of luck, nor of the speed of the machine.
settings.register_profile("cuwheel", derandomize=True, deadline=None, max_examples=200, database=None)
settings.load_profile("cuwheel")


def pytest_configure(config):
    config.addinivalue_line("filterwarnings", "error")


@pytest.fixture(scope="session")
def upstream_mviewbuf():
    """The C module that ours replaces."""
    try:
        return upstream.load_mviewbuf()
    except upstream.NotInstalled as reason:
        pytest.skip(str(reason))
