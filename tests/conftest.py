"""What every test file shares: hypothesis by day and by night, and the instruction-set
paths of this machine.
"""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from cover import part

settings.register_profile(
    "quick",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    max_examples=20,
)
settings.register_profile("nightly", settings.get_profile("quick"), max_examples=200)
# `make test-all` asks for the other by --hypothesis-profile
settings.load_profile("quick")


@pytest.fixture(params=["portable", "avx2", "avx512"])
def isa(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each instruction-set path this machine has, in use for the length of a test."""
    from sapwood import _core

    before = _core.isa()
    try:
        _core.set_isa(request.param)
    except ValueError:
        pytest.skip(f"this machine has no {request.param}")
    yield request.param
    _core.set_isa(before)


@pytest.hookimpl(tryfirst=True)  # before pytest selects by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests marked `pairwise`, mark as nightly those that a commit can do
    without.
    """
    functions: dict[tuple[object, object], list[pytest.Function]] = {}
    for item in items:
        if (
            isinstance(item, pytest.Function)
            and item.get_closest_marker("pairwise")
            and hasattr(item, "callspec")
        ):
            functions.setdefault((item.parent, item.originalname), []).append(item)
    for tests in functions.values():
        marker = tests[0].get_closest_marker("pairwise")
        values = [
            [value for _, value in sorted(test.callspec.params.items())]
            for test in tests
        ]
        by_day = part(values, *(marker.args if marker else ()))
        for place, test in enumerate(tests):
            if place not in by_day:
                test.add_marker("nightly")
