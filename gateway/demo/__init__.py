"""The small legacy server and the walk-through behind `holdfast demo`. Nothing imports it but the command.

`walkthrough` runs it all; `legacy_server` and `modern_client` are the two sides,
written in plain HTTP so that they can be read as examples of their eras.
"""
