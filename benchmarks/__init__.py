"""Measurements that take too long for a chapter or differ between machines; see `__main__`."""
