"""Corpora: synthetic data, files and public datasets, read one record at a time."""
