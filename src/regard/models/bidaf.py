"""Seo, Kembhavi, Farhadi, Hajishirzi 2017, "Bidirectional attention flow for machine comprehension"
(1611.01603).

    x     = two highway layers over [character CNN of w; E w]                  layers 1, 2
    H, U  = the same BiLSTM over the x of the context, and of the question     layer 3
    S_tj  = w . [h_t; u_j; h_t * u_j]                                          layer 4, eq. 1
    u'_t  = sum_j softmax_j(S_tj) u_j           context to question: "c2q"
    h'    = sum_t softmax_t(max_j S_tj) h_t     question to context, one for all t: "q2c"
    g_t   = [h_t; u'_t; h_t * u'_t; h_t * h']                                  eq. 2
    M     = two layers of BiLSTM over G,  M2 = one more over M                 layer 5
    p1    = softmax_t(w1 . [g_t; m_t]),  p2 = softmax_t(w2 . [g_t; m2_t])      layer 6, the head

`observe` records the two attentions as "c2q" and "q2c".
b: batch   t: words of the context   j: words of the question   c: characters of a word   d: width
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from regard.attention.core import Attention
from regard.attention.memory import Memory
from regard.attention.scores import Dot, Trilinear
from regard.attention.validation import check_dropout
from regard.errors import InputError
from regard.layers.cells import LSTM
from regard.layers.character_cnn import CharacterCNN, Highway
from regard.layers.dropout import dropout
from regard.layers.embedding import Embedding
from regard.layers.encoder_states import SpanStates
from regard.layers.output_heads import MeanPooling
from regard.layers.recurrent import Recurrent


class Bidaf(nn.Module):
    """The encoder of the equations above; the task adds layer 6.

    Widths: `dim` of word vectors, `character_output_dim` of the character CNN, `hidden_dim` of each
    direction. `use_words`, `use_characters`, `c2q` and `q2c` remove a part if False, as in table 1b
    of the paper. Without c2q, u'_t is the mean of the question; without q2c, g_t has no h_t * h'.
    """

    pooled_width = None

    def __init__(
        self,
        size: int,
        *,
        dim: int = 100,
        hidden_dim: int = 100,
        characters: int = 262,
        character_dim: int = 8,
        filters: Sequence[tuple[int, int]] = ((5, 100),),
        character_output_dim: int = 100,
        highway_layers: int = 2,
        layers: int = 2,
        use_words: bool = True,
        use_characters: bool = True,
        c2q: bool = True,
        q2c: bool = True,
        dropout: float = 0.2,
    ):
        super().__init__()
        check_dropout(dropout)
        if not use_words and not use_characters:
            raise InputError(
                "use_words and use_characters are both False; the model needs one of them"
            )
        self.dropout = dropout
        # with std 1 / sqrt(dim), learning to match words took over twice the steps (one seed)
        self.words = Embedding(size, dim, init_std=1.0) if use_words else None
        # differs: a linear layer follows the convolutions
        self.letters = (
            CharacterCNN(
                characters,
                character_output_dim,
                filters=filters,
                character_dim=character_dim,
                highway_layers=0,
            )
            if use_characters
            else None
        )
        input_dim = (dim if use_words else 0) + (character_output_dim if use_characters else 0)
        self.highways = nn.ModuleList(Highway(input_dim) for _ in range(highway_layers))
        self.recurrent = Recurrent(LSTM, input_dim, hidden_dim, 1, True)
        state_dim = self.recurrent.output_dim
        self.c2q, self.mean = Attention(Trilinear(state_dim)), None if c2q else MeanPooling()
        self.q2c = Attention(Dot()) if q2c else None
        flow_dim = state_dim * (4 if q2c else 3)
        layer_dropout = dropout if layers > 1 else 0.0
        self.modeling = Recurrent(LSTM, flow_dim, hidden_dim, layers, True, dropout=layer_dropout)
        self.ending = Recurrent(LSTM, state_dim, hidden_dim, 1, True)
        self.width = flow_dim + state_dim

    def encode(
        self,
        ids: Int[Tensor, "b t"],
        characters: Int[Tensor, "b t c"],
        valid: Bool[Tensor, "b t"],
        question_ids: Int[Tensor, "b j"],
        question_characters: Int[Tensor, "b j c"],
        question_valid: Bool[Tensor, "b j"],
    ) -> SpanStates:
        """Encode the words of the context: states are [G; M], ends are [G; M2]."""
        if not bool(question_valid.any(1).all()):
            raise InputError("question_valid has a row without a real word")
        context = self.contextual_states(ids, characters, valid)
        question = self.contextual_states(question_ids, question_characters, question_valid)
        flow = self.attention_flow(context, valid, question, question_valid)
        first, _ = self.modeling(self.drop(flow), valid)
        last, _ = self.ending(self.drop(first), valid)
        states, ends = (torch.cat([flow, part], -1) for part in (first, last))
        return SpanStates(states, valid, ends)

    def contextual_states(
        self, ids: Int[Tensor, "b t"], characters: Int[Tensor, "b t c"], valid: Bool[Tensor, "b t"]
    ) -> Float[Tensor, "b t d"]:
        """H or U: word and character vectors, highway layers, BiLSTM."""
        parts = []
        if self.letters is not None:
            parts.append(self.drop(self.letters.embed_words(characters, valid)))
        if self.words is not None:
            parts.append(self.words(ids))
        x = torch.cat(parts, -1)
        for highway in self.highways:
            x = highway(x)
        return self.recurrent(self.drop(x), valid)[0]

    def attention_flow(
        self,
        context: Float[Tensor, "b t d"],
        valid: Bool[Tensor, "b t"],
        question: Float[Tensor, "b j d"],
        question_valid: Bool[Tensor, "b j"],
    ) -> Float[Tensor, "b t g"]:
        """g_t of each word of the context, from both attentions."""
        memory = self.c2q.remember(question, question_valid)
        if self.mean is None:
            attended_question = self.c2q(context, memory)
        else:
            attended_question = self.mean(question, question_valid)[:, None].expand_as(context)
        parts = [context, attended_question, context * attended_question]
        if self.q2c is not None:
            energy = self.c2q.score(context, memory.keys)
            energy = energy.masked_fill(~question_valid[:, None], -torch.inf)
            # the query 1 over keys max_j S gives softmax_t(max_j S)
            context_memory = Memory(energy.amax(-1, keepdim=True), context, valid)
            parts.append(context * self.q2c(context.new_ones(len(context), 1, 1), context_memory))
        return torch.cat(parts, -1)

    def drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)
