"""The native modules can be imported, under their own names."""

import importlib

import pytest


@pytest.mark.parametrize("name", [{= names =}])
def test_a_native_module_is_imported_under_its_name(name):
    assert importlib.import_module(name).__name__ == name
