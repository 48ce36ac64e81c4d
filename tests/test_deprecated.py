"""Names of version 0.1 still work, and say that they are old."""

import importlib
import subprocess
import sys

import pytest

from tilp._deprecated import MODULES


@pytest.mark.parametrize("old", MODULES)
def test_an_old_module_name_is_the_new_module(old):
    code = (
        "import importlib, sys, warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    old = importlib.import_module(sys.argv[1])\n"
        "messages = [str(w.message) for w in caught if w.category is DeprecationWarning]\n"
        "assert any(sys.argv[1] in text and sys.argv[2] in text for text in messages), messages\n"
        "new = importlib.import_module(sys.argv[2])\n"
        "assert old is new and new.__spec__.name == sys.argv[2]\n"
    )
    subprocess.run([sys.executable, "-c", code, old, MODULES[old]], check=True, timeout=120)


def test_a_module_that_never_was_is_not_found():
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("tilp.interval_tools")
