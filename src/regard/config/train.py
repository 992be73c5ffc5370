"""[train]: how long, how fast, and what is kept."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from regard.config.table import Count, Part, Positive, Share, Table

# Of each pair one is given; giving the second on the command line takes the place of the first.
EITHER = {
    "steps": "epochs",
    "epochs": "steps",
    "tokens_per_batch": "sentences_per_batch",
    "sentences_per_batch": "tokens_per_batch",
}
Beta = Annotated[tuple[Part, Part], Field(strict=False)]


class Adam(Table):
    """Kingma & Ba 2015."""

    kind: Literal["adam"] = "adam"
    betas: Beta = Field(default=(0.9, 0.98), description="Decay of the mean and of the square.")
    eps: float = Field(default=1e-9, gt=0, description="Added to the root of the square.")


class AdamW(Table):
    """Loshchilov & Hutter 2019."""

    kind: Literal["adamw"] = "adamw"
    betas: Beta = Field(default=(0.9, 0.98), description="Decay of the mean and of the square.")
    eps: float = Field(default=1e-9, gt=0, description="Added to the root of the square.")
    weight_decay: float = Field(default=0.01, ge=0, description="Of the weights, each step.")


class Adadelta(Table):
    """Zeiler 2012."""

    kind: Literal["adadelta"] = "adadelta"
    rho: Part = Field(default=0.95, description="Decay of the squares.")
    eps: float = Field(default=1e-6, gt=0, description="Added to the squares.")


class Sgd(Table):
    """Gradient descent."""

    kind: Literal["sgd"] = "sgd"
    momentum: Part = Field(default=0.0, description="How much of the last step goes on.")


Optimiser = Annotated[Adam | AdamW | Adadelta | Sgd, Field(discriminator="kind")]


class Constant(Table):
    """The learning rate as it is."""

    kind: Literal["constant"] = "constant"
    warmup: Count = Field(default=0, description="Steps of a linear rise.")


class Noam(Table):
    """dim^-0.5 min(step^-0.5, step warmup^-1.5), times the learning rate: usually 1 or 2."""

    kind: Literal["noam"] = "noam"
    warmup: Positive = Field(default=4000, description="Steps of a linear rise.")


class InverseSqrt(Table):
    """Up to the learning rate, then down with the root of the step."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: Positive = Field(default=4000, description="Steps of a linear rise.")


class Cosine(Table):
    """Half a cosine, from the learning rate down."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = Field(default=0, description="Steps of a linear rise.")
    floor: Share = Field(
        default=0.0, description="The last learning rate, as a share of the first."
    )


class Plateau(Table):
    """Down when the metric has not improved."""

    kind: Literal["plateau"] = "plateau"
    warmup: Count = Field(default=0, description="Steps of a linear rise.")
    factor: float = Field(
        default=0.5, gt=0, lt=1, description="What the learning rate is multiplied by."
    )
    patience: Count = Field(default=2, description="Validations without a better one, before that.")


Schedule = Annotated[Constant | Noam | InverseSqrt | Cosine | Plateau, Field(discriminator="kind")]


class Train(Table):
    """Training."""

    steps: Positive | None = Field(default=10_000, description="Updates to make. Or give epochs.")
    epochs: Positive | None = Field(
        default=None, description="Times through the data. Or give steps."
    )
    tokens_per_batch: Positive | None = Field(
        default=4096, description="Size of a batch, padding included. Or give sentences_per_batch."
    )
    sentences_per_batch: Positive | None = Field(
        default=None, description="Size of a batch. Or give tokens_per_batch."
    )
    accumulate: Positive = Field(default=1, description="Batches for one update.")
    longest: Positive = Field(default=256, description="Longest text, in tokens.")
    buffer: Positive = Field(
        default=10_000, description="Texts in memory, to shuffle data that does not fit into it."
    )
    optimiser: Optimiser = Field(default=Adam(), description="adam, adamw, adadelta or sgd.")
    learning_rate: float = Field(default=1e-3, gt=0, description="The highest; but see schedule.")
    rates: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default={},
        description="Shares of the learning rate for parts of the model, by the beginning of their "
        "names, as { attention = 0.1 }; 0: they stay as they are.",
    )
    schedule: Schedule = Field(
        default=Constant(), description="constant, noam, inverse_sqrt, cosine or plateau."
    )
    clip: float = Field(
        default=1.0, ge=0, description="Longest gradient; longer ones are cut; 0: none."
    )
    label_smoothing: Part = Field(
        default=0.0, description="Share of each target given to all others."
    )
    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Decay of an exponential average of weights, as 0.999.",
    )
    average: Positive = Field(
        default=1, description="How many of the last checkpoints are averaged."
    )
    validate_every: Positive = Field(default=500, description="Steps between validations.")
    save_every: Positive = Field(default=500, description="Steps between checkpoints.")
    keep: Positive = Field(default=3, description="Checkpoints that stay on disk.")
    patience: Positive | None = Field(
        default=None, description="Stop after this many validations without a better one."
    )
    metric: Any = Field(default="loss", description="What is better, on dev.")  # by task
    autocast: Literal["bfloat16", "float16"] | None = Field(
        default=None, description="Numbers of the forward pass: bfloat16 or float16."
    )
    tensorboard: bool = Field(
        default=False, description="Also log for TensorBoard (pip install 'regard[tensorboard]')."
    )

    @model_validator(mode="before")
    @classmethod
    def _one_of_two(cls, given: Any) -> Any:
        """A default steps back where its alternative is given."""
        if not isinstance(given, dict):
            return given
        for name, other in EITHER.items():
            if given.get(name) is not None and given.get(other) is not None:
                raise ValueError(f"{name} and {other} are both given: take one of them out")
            if given.get(other) is not None:
                given = {name: None, **given}
        return given

    @model_validator(mode="after")
    def _agrees(self) -> "Train":
        for name in ("steps", "tokens_per_batch"):
            if getattr(self, name) is None and getattr(self, EITHER[name]) is None:
                raise ValueError(f"{name} and {EITHER[name]} are both missing: give one of them")
        if self.average > self.keep:
            wanted = f"average = {self.average} needs as many checkpoints"
            raise ValueError(f"{wanted}, but keep = {self.keep}: keep more")
        if self.schedule.kind == "cosine" and self.steps is None:
            raise ValueError("schedule.kind = 'cosine' must know its end: give steps, not epochs")
        if self.steps is not None and self.schedule.warmup > self.steps:
            rise = f"schedule.warmup = {self.schedule.warmup}"
            raise ValueError(f"{rise} is more than steps = {self.steps}: it would never end")
        return self


class TranslateTrain(Train):
    """Training to translate."""

    longest: Positive = Field(
        default=256, description="Longer pairs (in tokens, a side) are left out."
    )
    metric: Literal["loss", "bleu", "chrf", "ter", "exact"] = Field(
        default="loss", description="What is better: loss, bleu, chrf, ter or exact, on dev."
    )
    teacher_forcing: Share = Field(
        default=1.0,
        description="How often the decoder reads the true token before, not its own: 1 is always, "
        "less is scheduled sampling.",
    )
    teacher_forcing_steps: Count = Field(
        default=0, description="Steps in which that falls from 1, along a line; 0: at once."
    )
    compile: bool = Field(
        default=False, description="Compile the transformer first (torch.compile)."
    )
    guided_alignment: float = Field(
        default=0.0, ge=0, description="Weight of a loss on given alignments; 0 is none."
    )
    alignments: str | None = Field(
        default=None,
        description="These alignments: Pharaoh format, a line for each pair of training data.",
    )

    @model_validator(mode="after")
    def _is_guided(self) -> "TranslateTrain":
        if self.guided_alignment and self.alignments is None:
            raise ValueError("guided_alignment needs alignments: name the file that holds them")
        return self


class SummariseTrain(Train):
    """Training to summarise."""

    longest: Positive = Field(
        default=400, description="Of longer documents (in tokens) the end is cut."
    )
    longest_summary: Positive = Field(
        default=100, description="Of longer summaries (in tokens) the end is cut."
    )
    metric: Literal["loss", "rouge1", "rouge2", "rougeL"] = Field(
        default="loss", description="What is better, on dev: loss, rouge1, rouge2 or rougeL."
    )
    coverage: float = Field(
        default=1.0, ge=0, description="Weight of the coverage loss (pointer): lambda."
    )
    coverage_after: Count = Field(
        default=0,
        description="Steps before coverage is switched on (pointer); in the paper, almost all.",
    )

    @model_validator(mode="after")
    def _leaves_time(self) -> "SummariseTrain":
        if not self.coverage_after:
            return self
        if self.patience is not None:
            why = "patience may end the training before coverage_after"
            raise ValueError(f"{why} = {self.coverage_after}: leave one of them out")
        if self.steps is not None:
            last = self.steps - self.steps % self.validate_every
            if last <= self.coverage_after:
                raise ValueError(
                    f"coverage_after = {self.coverage_after} leaves no validation with coverage: "
                    f"the last is after {last} steps"
                )
        return self


class LanguageTrain(Train):
    """Training to write."""

    context: Positive = Field(default=128, description="Tokens that are read at a time.")
    carry: bool = Field(
        default=False,
        description="Go on with what was read before, window after window (recurrent models); else "
        "each begins anew, anywhere in the text.",
    )
    metric: Literal["loss", "perplexity"] = Field(
        default="loss", description="What is better, on dev: loss or perplexity."
    )


class ChatTrain(Train):
    """Training to converse."""

    longest: Positive = Field(
        default=256, description="Tokens of a row; longer conversations go on in a further row."
    )
    replies: bool = Field(
        default=False, description="Only replies count in the loss, and not what people say."
    )
    backwards: bool = Field(
        default=False,
        description="Conversations from their end, for a run that ranks replies: rank.backward.",
    )
    metric: Literal["loss", "bleu", "wishes", "entity_match"] = Field(
        default="loss", description="What is better, on dev: loss, bleu, wishes or entity_match."
    )


class ClassifyTrain(Train):
    """Training to classify."""

    longest: Positive = Field(
        default=256, description="Of longer texts (in tokens) the end is cut."
    )
    metric: Literal["loss", "accuracy", "f1"] = Field(
        default="loss", description="What is better, on dev: loss, accuracy or (macro) f1."
    )


class PretrainTrain(Train):
    """Training to be built on."""

    longest: Positive = Field(default=128, description="Tokens of a pair of stretches of text.")
    metric: Literal["loss", "accuracy"] = Field(
        default="loss", description="What is better, on dev: loss or accuracy, of hidden words."
    )


class TagTrain(Train):
    """Training to name stretches of words."""

    longest: Positive = Field(
        default=256, description="Of longer sentences (in tokens) the end is cut."
    )
    metric: Literal["loss", "f1"] = Field(
        default="loss", description="What is better, on dev: loss or f1."
    )


class UnderstandTrain(Train):
    """Training to understand."""

    longest: Positive = Field(
        default=256, description="Of longer sentences (in tokens) the end is cut."
    )
    metric: Literal["loss", "slot_f1", "intent", "sentence"] = Field(
        default="loss", description="What is better, on dev: loss, slot_f1, intent or sentence."
    )
