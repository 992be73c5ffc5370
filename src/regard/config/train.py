"""[train]: length, batches, optimizer, schedule and checkpoints."""

import re
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from regard.config.base import Config, Count, Fraction, Positive, Rate
from regard.errors import InputError

# Of each pair one is given; giving the second on the command line takes the place of the first.
ALTERNATIVES = {
    "steps": "epochs",
    "epochs": "steps",
    "tokens_per_batch": "examples_per_batch",
    "examples_per_batch": "tokens_per_batch",
}
DEVICE_NAME = re.compile(r"auto|cpu|cuda(:\d+)?|mps")
UndecayedKind = Literal["biases", "norms", "embeddings", "positions"]
Betas = Annotated[tuple[Rate, Rate], Field(strict=False)]


class AdamConfig(Config):
    """Adam (Kingma & Ba 2015)."""

    kind: Literal["adam"] = "adam"
    betas: Betas = Field(
        default=(0.9, 0.98),
        description="Decay of the averages of the gradient and of its square, each 0 to 1.",
    )
    eps: float = Field(default=1e-9, gt=0, description="Epsilon in the denominator, more than 0.")


class AdamWConfig(Config):
    """AdamW (Loshchilov & Hutter 2019)."""

    kind: Literal["adamw"] = "adamw"
    betas: Betas = Field(
        default=(0.9, 0.98),
        description="Decay of the averages of the gradient and of its square, each 0 to 1.",
    )
    eps: float = Field(default=1e-9, gt=0, description="Epsilon in the denominator, more than 0.")
    weight_decay: float = Field(default=0.01, ge=0, description="Weight decay, 0 or more.")
    no_decay: tuple[UndecayedKind, ...] = Field(
        default=("biases", "norms", "embeddings", "positions"),
        strict=False,
        description="Kinds of parameters without weight decay: biases, norms, embeddings, "
        "positions; []: all decay.",
    )


class AdadeltaConfig(Config):
    """Adadelta (Zeiler 2012)."""

    kind: Literal["adadelta"] = "adadelta"
    rho: Rate = Field(default=0.95, description="Decay of the averages of squares, 0 to 1.")
    eps: float = Field(
        default=1e-6, gt=0, description="Epsilon added to the averages of squares, more than 0."
    )


class SgdConfig(Config):
    """Stochastic gradient descent."""

    kind: Literal["sgd"] = "sgd"
    momentum: Rate = Field(default=0.0, description="Momentum, 0 to 1.")


OptimizerConfig = Annotated[
    AdamConfig | AdamWConfig | AdadeltaConfig | SgdConfig, Field(discriminator="kind")
]


class ConstantScheduleConfig(Config):
    """A constant learning rate, after the warmup."""

    kind: Literal["constant"] = "constant"
    warmup: Count = Field(
        default=0, description="Number of steps of a linear rise of the learning rate."
    )


class NoamScheduleConfig(Config):
    """dim^-0.5 min(step^-0.5, step warmup^-1.5) times the learning rate, which is usually 1 or
    2.
    """

    kind: Literal["noam"] = "noam"
    warmup: Positive = Field(
        default=4000, description="Number of steps of a linear rise of the learning rate."
    )


class InverseSqrtScheduleConfig(Config):
    """A linear rise, then a decay with the inverse square root of the step."""

    kind: Literal["inverse_sqrt"] = "inverse_sqrt"
    warmup: Positive = Field(
        default=4000, description="Number of steps of a linear rise of the learning rate."
    )


class CosineScheduleConfig(Config):
    """A decay along half a cosine."""

    kind: Literal["cosine"] = "cosine"
    warmup: Count = Field(
        default=0, description="Number of steps of a linear rise of the learning rate."
    )
    floor: Fraction = Field(
        default=0.0, description="Last learning rate as a share of the highest, 0 to 1."
    )


class PlateauScheduleConfig(Config):
    """A decay whenever the metric has stopped improving."""

    kind: Literal["plateau"] = "plateau"
    warmup: Count = Field(
        default=0, description="Number of steps of a linear rise of the learning rate."
    )
    factor: float = Field(
        default=0.5, gt=0, lt=1, description="Factor of the learning rate at each decay, 0 to 1."
    )
    patience: Count = Field(
        default=2, description="Number of validations without an improvement before a decay."
    )


ScheduleConfig = Annotated[
    ConstantScheduleConfig
    | NoamScheduleConfig
    | InverseSqrtScheduleConfig
    | CosineScheduleConfig
    | PlateauScheduleConfig,
    Field(discriminator="kind"),
]


class TrainConfig(Config):
    """Length, batches, optimizer, schedule and checkpoints of a training."""

    steps: Positive | None = Field(
        default=None,
        description="Number of optimizer steps; alternative: epochs. Default: by the size of the "
        "data, 40 to 200 epochs, with an early stop.",
    )
    epochs: Positive | None = Field(
        default=None, description="Number of passes through the data; alternative: steps."
    )
    tokens_per_batch: Positive | None = Field(
        default=4096,
        description="Batch size in tokens, with padding; alternative: examples_per_batch.",
    )
    examples_per_batch: Positive | None = Field(
        default=None, description="Batch size in examples; alternative: tokens_per_batch."
    )
    accumulate: int = Field(
        ge=1, le=10_000, default=1, description="Number of batches for each optimizer step."
    )
    max_tokens: Positive = Field(default=256, description="Maximum length of a text, in tokens.")
    shuffle_buffer: Positive = Field(
        default=10_000,
        description="Number of examples in the shuffle buffer of data that does not fit into "
        "memory.",
    )
    optimizer: OptimizerConfig = Field(
        default=AdamConfig(), description="Optimizer: adam, adamw, adadelta or sgd."
    )
    learning_rate: float = Field(
        default=1e-3,
        gt=0,
        description="Highest learning rate, more than 0; schedule changes it during training.",
    )
    rate_multipliers: dict[str, Annotated[float, Field(ge=0)]] = Field(
        default={},
        description="Factors of the learning rate for parts of the model, by the start of their "
        "parameter names, such as { attention = 0.1 }; 0 keeps a part fixed.",
    )
    schedule: ScheduleConfig = Field(
        default=ConstantScheduleConfig(),
        description="Schedule of the learning rate: constant, noam, inverse_sqrt, cosine or "
        "plateau.",
    )
    max_grad_norm: float = Field(
        default=1.0, ge=0, description="Maximum norm of the gradient, 0 or more; 0: no clipping."
    )
    label_smoothing: Rate = Field(
        default=0.0,
        description="Label smoothing: probability, 0 to 1, that is spread over all classes.",
    )
    ema: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="Decay of an exponential moving average of the weights, such as 0.999. Default:"
        " no average.",
    )
    average_checkpoints: Positive = Field(
        default=1, description="Number of last checkpoints whose weights are averaged at the end."
    )
    validate_every: Positive | None = Field(
        default=None,
        description="Number of steps between validations. Default: a twentieth of the training.",
    )
    save_every: Positive = Field(default=500, description="Number of steps between checkpoints.")
    keep_checkpoints: Positive = Field(
        default=3, description="Number of checkpoints to keep during training."
    )
    keep_finished: bool = Field(
        default=False,
        description="Keep the checkpoints of a finished training too: more steps then continue it "
        "exactly.",
    )
    patience: Positive | None = Field(
        default=None,
        description="Number of validations without an improvement before training stops. Default: "
        "7 if neither steps nor epochs is set, else no early stop.",
    )
    metric: Any = Field(
        default="loss", description="Metric on dev that selects the best weights."
    )  # by task
    autocast: Literal["bfloat16", "float16"] | None = Field(
        default=None,
        description="Number format of matrix products: bfloat16 or float16. Recurrences and losses "
        "stay in float32. Default: float32.",
    )
    device: str = Field(
        default="auto",
        description="Device of the training: cpu, cuda, cuda:1 or mps. Default: auto, the first of "
        "cuda, mps and cpu that the machine has.",
    )
    recompute_activations: bool = Field(
        default=False,
        description="Keep only the inputs of each block, and compute the rest again in the "
        "backward pass: less memory, about a third more time. For models with a stack of blocks.",
    )
    sharding: Literal["none", "full"] = Field(
        default="none",
        description="What each of several processes keeps: none: all of the weights; full: an "
        "equal part of weights, gradients and optimizer state. For models with a stack of blocks.",
    )
    tensorboard: bool = Field(
        default=False,
        description="Write a log for TensorBoard (pip install 'regard[tensorboard]').",
    )

    @field_validator("device")
    @classmethod
    def _check_device(cls, name: str) -> str:
        if not DEVICE_NAME.fullmatch(name):
            raise InputError(f"{name!r} is no device; give auto, cpu, cuda, cuda:1 or mps")
        return name

    @model_validator(mode="before")
    @classmethod
    def _check_alternatives(cls, values: Any) -> Any:
        """Drop a default whose alternative is given; refuse both."""
        if not isinstance(values, dict):
            return values
        for name, alternative in ALTERNATIVES.items():
            if values.get(name) is not None and values.get(alternative) is not None:
                raise InputError(f"{name} and {alternative} are both given: take one of them out")
            if values.get(alternative) is not None:
                values = {name: None, **values}
        return values

    @model_validator(mode="after")
    def _check_train(self) -> "TrainConfig":
        if self.tokens_per_batch is None and self.examples_per_batch is None:
            raise InputError(
                "tokens_per_batch and examples_per_batch are both missing: give one of them"
            )
        if self.average_checkpoints > self.keep_checkpoints:
            needed = f"average_checkpoints = {self.average_checkpoints} needs as many checkpoints"
            raise InputError(f"{needed}, but keep_checkpoints = {self.keep_checkpoints}: keep more")
        if self.schedule.kind == "cosine" and self.epochs is not None:
            raise InputError("schedule.kind = 'cosine' must know its end: give steps, not epochs")
        if self.steps is not None and self.schedule.warmup > self.steps:
            warmup_setting = f"schedule.warmup = {self.schedule.warmup}"
            raise InputError(
                f"{warmup_setting} is more than steps = {self.steps}: it would never end"
            )
        return self
