"""Where holds are found when there is more than one process."""
