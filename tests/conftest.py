"""What every test shares: checked shapes, a random seed that is printed, folders built once."""

import os
import random
import zlib
from collections.abc import Iterator
from pathlib import Path

from jaxtyping import config as jaxtyping_config
from jaxtyping import install_import_hook

# Before anything of `regard` is imported: from here on beartype checks every annotated shape.
install_import_hook("regard", "beartype.beartype")

import hypothesis  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
from support.commands import command, error_line, regard  # noqa: E402, F401
from support.shared import SharedFolders  # noqa: E402
from support.warm import start_server  # noqa: E402

WORKER = "PYTEST_XDIST_WORKER" in os.environ  # it has its seed from the session that began it
SESSION_SEED = int(os.environ.get("REGARD_SEED") or random.SystemRandom().randrange(2**31))
# A seed that was asked for fixes the examples of hypothesis, too: the same tests, every time.
FIXED = "REGARD_FIXED" in os.environ if WORKER else bool(os.environ.get("REGARD_SEED"))

os.environ["REGARD_SEED"] = str(SESSION_SEED)
if FIXED:
    os.environ["REGARD_FIXED"] = "1"

# Tests are small: a second thread gains nothing, and on a busy machine may cost tenfold.
torch.set_num_threads(1)
hypothesis.settings.register_profile("regard", deadline=None, derandomize=FIXED, print_blob=True)
hypothesis.settings.load_profile("regard")


def pytest_report_header() -> str:
    return f"regard: REGARD_SEED={SESSION_SEED} (set it to run the same random tests again)"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--all", action="store_true", help="also run the tests marked `full`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the full products of the laws, unless all tests are asked for."""
    if config.getoption("--all"):
        return
    left_out = [item for item in items if item.get_closest_marker("full")]
    items[:] = [item for item in items if not item.get_closest_marker("full")]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> SharedFolders:
    """`shared("name", build)`: a folder that one worker builds and all workers read."""
    base = tmp_path_factory.getbasetemp()
    return SharedFolders((base.parent if WORKER else base) / "shared")


@pytest.fixture(scope="session")
def warm(shared: SharedFolders) -> Path:
    """A folder with a `regard` that starts in milliseconds."""
    session = os.getppid() if WORKER else os.getpid()
    return shared("warm", lambda folder: start_server(folder, session))


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """This test's own number, from the session's seed and its name: order does not matter."""
    return zlib.crc32(f"{SESSION_SEED} {request.node.nodeid}".encode())


@pytest.fixture(autouse=True)
def _seeded(seed: int) -> None:
    random.seed(seed)
    torch.manual_seed(seed)


@pytest.fixture
def unchecked() -> Iterator[None]:
    """Shapes go unchecked, as they do for users: to reach our own ValueErrors on bad ones."""
    before = jaxtyping_config.jaxtyping_disable
    jaxtyping_config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        jaxtyping_config.update("jaxtyping_disable", before)
