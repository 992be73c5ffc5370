"""Tokenizers: text <-> ids, without torch."""
