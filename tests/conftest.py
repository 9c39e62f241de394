"""What every test file shares: hypothesis without a clock, and the instruction-set paths of this machine."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("sapwood", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("sapwood")


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
