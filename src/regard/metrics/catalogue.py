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
    "rouge": "F1 of words, pairs of words and the longest common row of words (Lin 2004)",
    "repetition_rate": (
        "share of three words in a row that the same output has said before, in percent"
    ),
    "copy_rate": (
        "share of the words of outputs that stand in what they were written from, in percent"
    ),
    "perplexity": "exp of the mean negative log-likelihood of a token; less is better",
    "bits_per_token": "negative log-likelihood in bits, per token; less is better",
    "bits_per_character": "negative log-likelihood in bits, per character; less is better",
    "frame_nll": "negative log-likelihood of the 88 keys of a step, in nats; less is better",
    "bits_per_sequence": "negative log-likelihood of a sequence in bits (Graves et al. 2014)",
    "wrong_bits": "bits of a sequence that are not as wanted; less is better",
    "mean_return": "what a life brings in the mean, and its standard error (Duan et al. 2016)",
    "accuracy": "share of examples whose class was guessed right, 0 to 1",
    "success_rate": "share of episodes that were told right, with its 95 % interval, 0 to 1",
    "macro_f1": "mean F1 of the classes, 0 to 1: each counts the same, however rare it is",
    "entity_scores": "F1 of stretches of words whose ends and name are right, 0 to 1 (conlleval)",
    "answer_scores": (
        "answers that are right, and F1 of their words, 0 to 1 (Rajpurkar et al. 2016)"
    ),
    "distinct_ngrams": "different n-grams as a share of all, 0 to 1 (Li et al. 2016)",
    "entity_match": "conversations whose last offer is as the goal says, 0 to 1 (Wen et al. 2017)",
    "bleu_1_to_4": "BLEU of n-grams up to 1, 2, 3 and 4, in lower case: what captions are told by",
    "cider": "n-grams shared with references, rare ones first (Vedantam et al. 2015: CIDEr-D)",
    "pointing_accuracy": "share of words that looked most at the place they speak of, in percent",
    "residue_accuracy": "share of residues whose state was told right, 0 to 1: Q3, Q8",
    "segment_overlap": "how far stretches of one state overlap, 0 to 1: SOV (Zemla et al. 1999)",
    "top_precision": "contacts among the pairs that are likeliest to be some, 0 to 1",
    "micro_f1": "F1 of all examples together, 0 to 1; of all classes it is the accuracy",
}
