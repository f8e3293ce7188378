# SPDX-License-Identifier: Apache-2.0
"""The stack under test. `shop` is shared by a file, `own_shop` belongs to one test."""
import os
import shutil
import sys
import tempfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "stack"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

from shop import Shop  # noqa: E402  (needs the paths above)
from stack import Stack  # noqa: E402

BUILD = os.path.abspath(os.environ.get("TIDEGATE_TEST_BUILD", os.path.join(ROOT, "build", "release")))
# Tests ask faster than people do; those about the rate set their own.
os.environ.setdefault("TIDEGATE_EDGE_RATE", "0")


# Files that take minutes begin first, so that none of them is what all the others have to wait for in the end.
LONG = ("test_recovery_servers", "test_sale_kills", "test_corruption")


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: LONG.index(item.module.__name__) if item.module.__name__ in LONG else len(LONG))


def open_shop(guarded=True):
    folder = tempfile.mkdtemp(prefix="tidegate-flow-")
    os.chmod(folder, 0o711)
    stack = Stack(os.path.join(folder, "run"), BUILD, quiet=True)
    stack.guarded = guarded
    stack.start()
    return Shop(stack), folder


def close_shop(shop, folder):
    shop.stack.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def shop():
    """One stack for a file: for tests that break nothing."""
    shared, folder = open_shop()
    yield shared
    close_shop(shared, folder)


@pytest.fixture(autouse=True)
def sales_end_with_their_test(request):
    """Every open sale is proved twice a second: in a shared stack they would slow down the tests that follow."""
    shared = next((request.getfixturevalue(name) for name in ("shop", "hardy") if name in request.fixturenames), None)
    before = len(shared.applied) if shared else 0
    yield
    if shared and shared.applied[before:]:
        shared.close(shared.applied[before:])


@pytest.fixture
def own_shop():
    """A stack of the test's own: it may be killed, frozen and corrupted."""
    own, folder = open_shop()
    yield own
    close_shop(own, folder)
