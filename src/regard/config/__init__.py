"""TOML -> typed settings. The lowest room: every other may read it."""
