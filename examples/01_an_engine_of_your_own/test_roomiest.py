import pytest
from roomiest import Roomiest

from argosy.testing import conformance


@pytest.mark.parametrize("check", conformance.CHECKS, ids=lambda check: check.__name__)
def test_roomiest_conforms(check):
    check(Roomiest)
