"""TODO regard.config.models.common."""

from typing import Annotated, Literal

from pydantic import Field

from regard.config.base import Positive

ScoreName = Literal["dot", "scaled_dot", "general", "additive", "location", "cosine", "salience"]

NormalizerName = Literal["softmax", "sparsemax", "entmax15", "reinforce", "straight_through"]

InitScheme = Literal["paper", "scaled"]

ActivationName = Literal["relu", "gelu", "tanh_gelu", "swish", "tanh"]

DIM_HELP = "Width of a word vector."

HIDDEN_DIM_HELP = "Width of a state; as dim where not set."

OUTPUT_DIM_HELP = "Width before the output layer; as hidden_dim where not set."

SCORE_HELP = "How query and memory are compared; `regard list` shows the scores."

NORMALIZE_HELP = "How energies become weights; `regard list` shows the normalisers."

MAX_POSITIONS_HELP = "Longest source, for the location score."

INIT_HELP = "Weights to begin with: as in the paper, or scaled by width."

DROPOUT_HELP = "Share of values set to zero in training."

STATE_DROPOUT_HELP = "The same in recurrent products, one mask for a sequence."

ACTIVATION_HELP = "In the feed-forward layers: relu, gelu, tanh_gelu, swish or tanh."

LAYERS_HELP = "Layers of the encoder, and of the decoder."

HEADS_HELP = "Attentions side by side; dim is divided among them."

CharacterFilter = Annotated[tuple[Positive, Positive], Field(strict=False)]

ALIGN_DIM_HELP = "Width inside the score of the attention; as the states where not set."
