"""Text <-> ids, without torch: the `tokenizers` library behind one small class."""
