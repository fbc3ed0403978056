"""`python -m gateway` is `holdfast`. Knows nothing else."""

from gateway.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
