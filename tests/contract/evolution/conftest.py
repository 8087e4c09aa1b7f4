"""Enables assertion details for the helpers of this suite."""

import pytest

# What holds of every change is asserted in a helper module, whose values a failure has to show.
pytest.register_assert_rewrite("tests.contract.evolution.worlds")
