"""What the test suite of numba-cuda expects of its project's configuration, which its wheels do not have.

    cargo xtask test-gpu --wheel numba_cuda….whl --suite numba.cuda.tests --plugin tests/suites/numba_cuda_suite.py \
        --with filecheck --with cffi --with ml-dtypes --with pytest-benchmark --with psutil --workers 14
"""

import pytest


def pytest_addoption(parser):
    parser.addoption("--dump-failed-filechecks", action="store_true", help="dump reproducers for FileCheck tests")


@pytest.fixture(scope="class")
def initialize_from_pytest_config(request):
    """What a class of tests asks for."""
    request.cls._dump_failed_filechecks = request.config.getoption("dump_failed_filechecks")
