"""The tests. A package only so that `python -m tests.bench` is found before any other `tests`."""
