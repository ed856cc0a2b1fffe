"""What every test of this project runs under."""

from hypothesis import settings

# A slow machine is no failure, and a failure elsewhere must be repeatable here from what was printed.
settings.register_profile("project", deadline=None, print_blob=True)
settings.load_profile("project")
