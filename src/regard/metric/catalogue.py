"""Every metric by name, in one line. Imports nothing."""

METRICS = {
    "bleu": "share of n-grams up to 4 that are in a reference, 0 to 100 (Papineni et al. 2002)",
    "chrf": "F2 of character n-grams up to 6, 0 to 100 (Popovic 2015)",
    "ter": "edits and shifts per reference word, in percent; less is better (Snover et al. 2006)",
    "exact_match": "outputs that equal a reference, in percent",
    "aer": "alignment error rate, 0 to 1; less is better (Och & Ney 2003)",
    "precision": "share of the guessed links that are possible, 0 to 1",
    "recall": "share of the sure links that were guessed, 0 to 1",
    "f1": "harmonic mean of precision and recall, 0 to 1",
    "perplexity": "exp of the mean negative log-likelihood of a token; less is better",
    "bits_per_character": "negative log-likelihood in bits, per character; less is better",
}
