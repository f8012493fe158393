"""The environment: creates it, pins and upgrades its packages, and lists their licenses."""
