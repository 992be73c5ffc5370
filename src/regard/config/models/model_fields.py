"""Types and help texts that several [model] tables share."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.base import Positive

ScoreName = Literal[
    "dot",
    "scaled_dot",
    "general",
    "additive",
    "location",
    "cosine",
    "salience",
]

NormalizerName = Literal["softmax", "sparsemax", "entmax15", "straight_through"]

# REINFORCE needs a loss of its own, which only captioning has.
SampledNormalizerName = Literal[NormalizerName, "reinforce"]

InitScheme = Literal["paper", "scaled"]

ActivationName = Literal["relu", "gelu", "tanh_gelu", "swish", "tanh"]

DIM_HELP = "Width of the token embeddings."

HIDDEN_DIM_HELP = "Width of the hidden states. Default: dim."

OUTPUT_DIM_HELP = "Width of the layer before the output. Default: hidden_dim."

SCORE_HELP = "Score of a query and a key; `regard list` shows the scores."

NORMALIZE_HELP = "Normalizer of the energies; `regard list` shows the normalizers."

MAX_POSITIONS_HELP = "Maximum length of a source for the location score, in tokens."

INIT_HELP = "Initial weights: paper (as published) or scaled (by width)."

DROPOUT_HELP = "Probability, 0 to 1, of setting a value to zero in training."

STATE_DROPOUT_HELP = (
    "Dropout of the recurrent connections, 0 to 1, with one mask for each sequence."
)

ACTIVATION_HELP = "Activation of the feed-forward layers: relu, gelu, tanh_gelu, swish or tanh."

LAYERS_HELP = "Number of layers of the encoder, and of the decoder."

HEADS_HELP = "Number of attention heads; dim must be a multiple of it."

CharacterFilter = Annotated[tuple[Positive, Positive], Field(strict=False)]

ALIGN_DIM_HELP = "Width inside the additive score. Default: the width of the states."
