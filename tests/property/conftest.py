"""Enables assertion details for the helpers of this suite."""

import pytest

# The checks of histories are in a helper module: without this, a failure would not show the values.
pytest.register_assert_rewrite("tests.property.histories", "tests.contract.evolution.worlds")
