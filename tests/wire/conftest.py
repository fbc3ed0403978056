"""Properties are judged by what they find, never by how long a busy machine took over one example."""

from hypothesis import settings

settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")
