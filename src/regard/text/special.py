"""The four ids that every vocabulary begins with. Padding is always on the right."""

PAD, START, END, UNKNOWN = 0, 1, 2, 3
SPECIALS = ("<pad>", "<s>", "</s>", "<unk>")
