"""The configuration as types: how it is loaded and checked. No other room knows where a setting came from.

`model` has all settings, `upstream` and `auth` their larger parts. `load` makes
them from file, environment and command line; `check` finds what is wrong between
them. Docstrings of fields are also the descriptions in the JSON Schema (`schema`).
"""
