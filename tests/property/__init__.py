import pytest

# So that a failure in there shows both verdicts.
pytest.register_assert_rewrite("tests.property.engines")
