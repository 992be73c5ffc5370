"""BERT: Devlin et al. 2019, "Pre-training of deep bidirectional transformers" (1810.04805).

    x      = dropout(LN(E id + P + S segment))                                       fig. 2
    layers of:  x = LN(x + self-attention(x)),  x = LN(x + W2 gelu(W1 x + b1) + b2)   3
    pooled = tanh(W x_1 + b)                          x_1: at [CLS]                   3.1
    p(word at a masked position) = softmax(E LN(gelu(W x + b)) + c)                   task 1
    p(the second segment follows the first) = softmax(W pooled + b)                   task 2

The last three equations are from the authors' code; the paper describes them in words.
b: batch   t: positions   n: masked positions   v: size   d: dim
"""

from typing import Literal

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.validation import check_dropout, check_positive, check_valid
from regard.errors import InputError
from regard.kernels.linear import Linear
from regard.layers.activations import build_activation
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import EncoderStates
from regard.layers.positions import LearnedPositions
from regard.layers.prepared_stack import encode_stack
from regard.layers.transformer_block import TransformerBlock, TransformerStack

STD = 0.02
SIZES = {
    "base": {"dim": 768, "heads": 12, "layers": 12},  # 109,482,240 weights with 30,522 tokens
    "large": {"dim": 1024, "heads": 16, "layers": 24},  # 335,141,888
}


class Bert(nn.Module):
    """Encoder and pooler; the defaults are the paper's base model. `SIZES` has both sizes.

    `max_positions` is the maximum number of tokens. `hidden_dim` is the width of the feed-forward
    layer (default: 4 dim). `pretrain` adds the output heads of the paper's tasks: "masked" for
    words, "both" for words and next sentence. `init_std` is the standard deviation of initial
    weights. DistilBERT has no `segments` and no `pooler`, RoBERTa has one segment.
    """

    def __init__(
        self,
        size: int,
        *,
        dim: int = 768,
        heads: int = 12,
        layers: int = 12,
        max_positions: int = 512,
        segments: int = 2,
        pooler: bool = True,
        pretrain: Literal["none", "masked", "both"] = "none",
        hidden_dim: int | None = None,
        activation: str = "gelu",
        norm_eps: float = 1e-12,
        dropout: float = 0.1,
        attention_dropout: float | None = None,
        init_std: float = STD,
    ):
        super().__init__()
        check_positive("heads", heads)
        check_positive("init_std", init_std)
        check_dropout(dropout)
        check_pretrain(pretrain, pooler)
        self.max_positions, self.dropout, self.activation = (
            max_positions,
            dropout,
            build_activation(activation),
        )
        self.width, self.pooled_width = dim, dim if pooler else None
        has_masked_head, has_next_head = pretrain != "none", pretrain == "both"
        self.words = Embedding(size, dim, bias=has_masked_head, init_std=init_std)
        self.position = LearnedPositions(max_positions, dim, init_std=init_std)
        self.segments = Embedding(segments, dim, init_std=init_std) if segments else None
        self.norm = nn.LayerNorm(dim, norm_eps)
        self.encoder = TransformerStack(
            TransformerBlock(
                *(dim, heads, hidden_dim or 4 * dim),
                norm_eps=norm_eps,
                activation=self.activation,
                dropout=dropout,
                attention_dropout=attention_dropout,
            )
            for _ in range(layers)
        )
        self.pooler = Linear(dim, dim) if pooler else None
        self.guess = Linear(dim, dim) if has_masked_head else None
        self.guess_norm = nn.LayerNorm(dim, norm_eps) if has_masked_head else None
        # class 0: the second segment follows the first; class 1: it does not
        self.following = Linear(dim, 2) if has_next_head else None
        for module in self.modules():
            if isinstance(module, nn.Linear):
                # differs: the authors truncate the normal distribution at two deviations
                nn.init.normal_(module.weight, std=init_std)
                nn.init.zeros_(module.bias)

    def encode(
        self,
        ids: Int[Tensor, "b t"],
        valid: Bool[Tensor, "b t"],
        segments: Int[Tensor, "b t"] | None = None,
    ) -> EncoderStates:
        """Encode tokens; `segments` is 0 or 1, the text of each token (None: all 0)."""
        check_valid(valid, ids.shape)
        if ids.shape[1] > self.max_positions:
            raise InputError(
                f"ids have {ids.shape[1]} positions, but max_positions is {self.max_positions}"
            )
        words = self.position(self.words(ids))
        if self.segments is not None:
            words = words + (
                self.segments.weight[0] if segments is None else self.segments(segments)
            )
        elif segments is not None:
            raise InputError("segments must be None for a model with segments=0")
        words = dropout(self.norm(words), self.dropout, self.training)
        states = encode_stack(self.encoder, words, valid)
        pooled = None if self.pooler is None else self.pooler(states[:, 0]).tanh()
        return EncoderStates(states, valid, pooled)

    def masked_word_states(self, states: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
        """Transform states at masked positions into the inputs of `output`."""
        if self.guess is None or self.guess_norm is None:
            raise InputError("model has no head for masked words; set pretrain='masked' or 'both'")
        return self.guess_norm(self.activation(self.guess(states)))

    def logits(self, states: Float[Tensor, "*n d"]) -> Float[Tensor, "*n v"]:
        return self.words.logits(states)

    @property
    def output(self) -> Embedding:
        """The layer before the softmax over words; `following` is that of the second task."""
        return self.words


def check_pretrain(pretrain: str, pooler: bool) -> None:
    if pretrain not in ("none", "masked", "both"):
        raise InputError(f"pretrain must be 'none', 'masked' or 'both', not {pretrain!r}")
    if pretrain == "both" and not pooler:
        raise InputError("pretrain='both' needs pooler=True; the second task reads its vector")
