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
    "bits_per_token": "negative log-likelihood in bits, per token; less is better",
    "bits_per_character": "negative log-likelihood in bits, per character; less is better",
    "frame_nll": "negative log-likelihood of the 88 keys of a step, in nats; less is better",
    "accuracy": "share of examples whose class was guessed right, 0 to 1",
    "macro_f1": "mean F1 of the classes, 0 to 1: each counts the same, however rare it is",
    "entities": "F1 of stretches of words whose ends and name are right, 0 to 1 (conlleval)",
    "answered": "answers that are right, and F1 of their words, 0 to 1 (Rajpurkar et al. 2016)",
    "micro_f1": "F1 of all examples together, 0 to 1; of all classes it is the accuracy",
}
