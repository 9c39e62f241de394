"""What every test file shares: hypothesis by day and by night, and the instruction-set paths of this machine."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True, max_examples=20
)
settings.register_profile("nightly", settings.get_profile("quick"), max_examples=200)
settings.load_profile("quick")  # `make test-all` asks for the other by --hypothesis-profile


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
