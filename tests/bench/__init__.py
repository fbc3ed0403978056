"""The speed of the gateway, beside a bare proxy: `python -m tests.bench`. A command, not a timed test."""
