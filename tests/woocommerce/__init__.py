import pytest

# Paths and parcels assert too, and a failure has to show its values.
pytest.register_assert_rewrite("tests.woocommerce.paths", "tests.woocommerce.parcels")
