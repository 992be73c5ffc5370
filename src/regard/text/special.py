"""The four special ids at the start of every vocabulary. Padding is always on the right."""

PAD, START, END, UNKNOWN = 0, 1, 2, 3
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
