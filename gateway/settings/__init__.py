"""The configuration as types: how it is loaded and checked. No other room reads files or the environment."""
