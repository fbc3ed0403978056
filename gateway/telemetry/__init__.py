"""Logs and metrics, each name declared here; what must not be seen is removed here."""
