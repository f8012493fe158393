"""Measurements that take too long for a chapter, or depend on the machine; see `__main__`."""
