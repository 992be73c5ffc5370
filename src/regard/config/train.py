"""[train]: how long, how fast, and what is kept."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from regard.config.base import Config, Count, Fraction, Positive, Rate

# Of each pair one is given; giving the second on the command line takes the place of the first.
ALTERNATIVES = {
    "steps": "epochs",
    "epochs": "steps",
    "tokens_per_batch": "examples_per_batch",
    "examples_per_batch": "tokens_per_batch",
}
Betas = Annotated[tuple[Rate, Rate], Field(strict=False)]


class AdamConfig(Config):
    """Kingma & Ba 2015."""

    kind: Literal["adam"] = "adam"
    betas: Betas = Field(default=(0.9, 0.98), description="Decay of the mean and of the square.")
    eps: float = Field(default=1e-9, gt=0, description="Added to the root of the square.")


class AdamWConfig(Config):
    """Loshchilov & Hutter 2019."""

    kind: Literal["adamw"] = "adamw"
    betas: Betas = Field(default=(0.9, 0.98), description="Decay of the mean and of the square.")
    eps: float = Field(default=1e-9, gt=0, description="Added to the root of the square.")
    weight_decay: float = Field(default=0.01, ge=0, description="Of the weights, each step.")


class AdadeltaConfig(Config):
    """Zeiler 2012."""

    kind: Literal["adadelta"] = "adadelta"
    rho: Rate = Field(default=0.95, description="Decay of the squares.")
    eps: float = Field(default=1e-6, gt=0, description="Added to the squares.")


class SgdConfig(Config):
    """Gradient descent."""

    kind: Literal["sgd"] = "sgd"
    momentum: Rate = Field(default=0.0, description="How much of the last step goes on.")


OptimizerConfig = Annotated[
    AdamConfig | AdamWConfig | AdadeltaConfig | SgdConfig, Field(discriminator="kind")
]


class ConstantScheduleConfig(Config):
    """The learning rate as it is."""

    kind: Literal["constant"] = "constant"
    warmup: Count = Field(default=0, description="Steps of a linear rise.")


class NoamScheduleConfig(Config):
    """dim^-0.5 min(step^-0.5, step warmup^-1.5), times the learning rate: usually 1 or 2."""

    kind: Literal["noam"] = "noam"
    warmup: Positive = Field(default=4000, description="Steps of a linear rise.")


class InverseSqrtScheduleConfig(Config):
    """Up to the learning rate, then down with the root of the step."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: Positive = Field(default=4000, description="Steps of a linear rise.")


class CosineScheduleConfig(Config):
    """Half a cosine, from the learning rate down."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = Field(default=0, description="Steps of a linear rise.")
    floor: Fraction = Field(
        default=0.0, description="The last learning rate, as a share of the first."
    )


class PlateauScheduleConfig(Config):
    """Down when the metric has not improved."""

    kind: Literal["plateau"] = "plateau"
    warmup: Count = Field(default=0, description="Steps of a linear rise.")
    factor: float = Field(
        default=0.5, gt=0, lt=1, description="What the learning rate is multiplied by."
    )
    patience: Count = Field(default=2, description="Validations without a better one, before that.")


ScheduleConfig = Annotated[
    ConstantScheduleConfig
    | NoamScheduleConfig
    | InverseSqrtScheduleConfig
    | CosineScheduleConfig
    | PlateauScheduleConfig,
    Field(discriminator="kind"),
]


class TrainConfig(Config):
    """Training."""

    steps: Positive | None = Field(default=10_000, description="Updates to make. Or give epochs.")
    epochs: Positive | None = Field(
        default=None, description="Times through the data. Or give steps."
    )
    tokens_per_batch: Positive | None = Field(
        default=4096, description="Size of a batch, padding included. Or give examples_per_batch."
    )
    examples_per_batch: Positive | None = Field(
        default=None, description="Size of a batch. Or give tokens_per_batch."
    )
    accumulate: Positive = Field(default=1, description="Batches for one update.")
    max_tokens: Positive = Field(default=256, description="Longest text, in tokens.")
    shuffle_buffer: Positive = Field(
        default=10_000, description="Texts in memory, to shuffle data that does not fit into it."
    )
    optimizer: OptimizerConfig = Field(
        default=AdamConfig(), description="adam, adamw, adadelta or sgd."
    )
    learning_rate: float = Field(default=1e-3, gt=0, description="The highest; but see schedule.")
    rate_multipliers: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default={},
        description="Shares of the learning rate for parts of the model, by the beginning of their "
        "names, as { attention = 0.1 }; 0: they stay as they are.",
    )
    schedule: ScheduleConfig = Field(
        default=ConstantScheduleConfig(),
        description="constant, noam, inverse_sqrt, cosine or plateau.",
    )
    max_grad_norm: float = Field(
        default=1.0, ge=0, description="Longest gradient; longer ones are cut; 0: none."
    )
    label_smoothing: Rate = Field(
        default=0.0, description="Share of each target given to all others."
    )
    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Decay of an exponential average of weights, as 0.999.",
    )
    average_checkpoints: Positive = Field(
        default=1, description="How many of the last checkpoints are averaged."
    )
    validate_every: Positive = Field(default=500, description="Steps between validations.")
    save_every: Positive = Field(default=500, description="Steps between checkpoints.")
    keep_checkpoints: Positive = Field(default=3, description="Checkpoints that stay on disk.")
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
    def _check_alternatives(cls, values: Any) -> Any:
        """A default steps back where its alternative is given."""
        if not isinstance(values, dict):
            return values
        for name, alternative in ALTERNATIVES.items():
            if values.get(name) is not None and values.get(alternative) is not None:
                raise ValueError(f"{name} and {alternative} are both given: take one of them out")
            if values.get(alternative) is not None:
                values = {name: None, **values}
        return values

    @model_validator(mode="after")
    def _check_train(self) -> "TrainConfig":
        for name in ("steps", "tokens_per_batch"):
            if getattr(self, name) is None and getattr(self, ALTERNATIVES[name]) is None:
                raise ValueError(
                    f"{name} and {ALTERNATIVES[name]} are both missing: give one of them"
                )
        if self.average_checkpoints > self.keep_checkpoints:
            needed = f"average_checkpoints = {self.average_checkpoints} needs as many checkpoints"
            raise ValueError(f"{needed}, but keep_checkpoints = {self.keep_checkpoints}: keep more")
        if self.schedule.kind == "cosine" and self.steps is None:
            raise ValueError("schedule.kind = 'cosine' must know its end: give steps, not epochs")
        if self.steps is not None and self.schedule.warmup > self.steps:
            warmup_setting = f"schedule.warmup = {self.schedule.warmup}"
            raise ValueError(
                f"{warmup_setting} is more than steps = {self.steps}: it would never end"
            )
        return self
