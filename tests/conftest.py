"""Settings for all tests."""

from hypothesis import settings

# A slow machine is not a failure: examples have no deadline.
settings.register_profile("gcon", deadline=None)
settings.load_profile("gcon")
