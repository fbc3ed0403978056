"""The small legacy server and the walk-through behind `holdfast demo`. Nothing imports it but the command."""
