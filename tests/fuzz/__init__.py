"""The fuzzer: `python -m tests.fuzz`. Seeded and bounded; it measures, and changes nothing but its report."""
