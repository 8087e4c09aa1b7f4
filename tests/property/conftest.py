"""What failures of this suite show."""

import pytest

# The checks of histories lie beside their tests: without this, a failure would not show the values.
pytest.register_assert_rewrite("tests.property.histories")
