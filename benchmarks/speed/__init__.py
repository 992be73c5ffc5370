"""Speed beside other engines: `make bench`; see run.py."""
