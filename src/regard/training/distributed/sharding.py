"""Sharded training: each process keeps an equal part of weights, gradients and optimizer state.

By torch's FSDP2 (`fully_shard`), whose parameters are `DTensor`s with the rows of this process. The
weights of a block are gathered while it runs, forward and backward. The weights outside of blocks,
such as embeddings, are gathered while the loss is computed. Gradients are summed, and each process
keeps its rows of the sum.
"""

import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import cast

from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor

from regard.kernels.linear import release_packed_weights
from regard.models.protocols import Model
from regard.run import Run
from regard.tasks.loss import Loss
from regard.tasks.tensor_file import whole_tensors
from regard.training.allocation import return_freed_memory
from regard.training.distributed.group import WorkerGroup
from regard.training.distributed.shardable import gathered_modules
from regard.training.ema import copied_weights
from regard.training.loop import AnyTraining

LossFunction = Callable[[object, int], Loss]


class ShardedTraining:
    """A training of which this process keeps its rows, from before the first step on.

    `run` validates. In the first process it is a copy of the trained run, whose weights exist only
    inside `whole_weights`.
    """

    def __init__(self, training: AnyTraining, run: Run):
        self.training, self.run = training, run
        shard_training(training)
        self.weights = training.model.state_dict()
        self.parameter = next(training.model.parameters())
        if training.group.is_main:
            self.run = Run(run.settings, run.vocabularies).use_device(run.device)
            drop_parameters(self.run.model)
        return_freed_memory()

    def keep_rows(self, group: str, name: str, tensor: Tensor) -> Tensor:
        """Return the part of a tensor of a checkpoint that this process keeps."""
        if (
            group == "optimizer" and tensor.ndim
        ):  # numbers, such as Adam's count of steps, are whole
            return own_rows(tensor, self.parameter)
        if group in ("weights", "average"):
            return own_rows(tensor, self.weights.get(name, tensor))
        return tensor

    @contextmanager
    def whole_weights(self, weights: Mapping[str, Tensor]) -> Generator[None]:
        """Gather weights into the run of the first process, and forget them at the end.

        Gradients are forgotten before. Buffers that a validation changes are changed in the
        training.
        """
        self.training.optimizer.zero_grad(set_to_none=True)
        is_main, model = self.training.group.is_main, self.run.model
        parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
        for name, tensor in whole_tensors(weights):
            if is_main and name in parameters:
                parameters[name].data = tensor
            elif is_main:
                buffers[name].copy_(tensor)
        try:
            yield
            for name, buffer in self.training.model.named_buffers():
                if is_main and name in weights:
                    buffer.copy_(buffers[name])
        finally:
            if is_main:
                drop_parameters(model)


def shard_training(training: AnyTraining) -> None:
    """Replace the parameters of a training, which has done no step, by rows of them."""
    model = training.model
    names = {parameter: name for name, parameter in model.named_parameters()}
    training.loss_function = shard_model(model, training.loss_function, training.group)
    rows = dict(model.named_parameters())
    for group in training.optimizer.param_groups:
        group["params"] = [rows[names[parameter]] for parameter in group["params"]]
    if training.ema is not None:
        training.ema.weights = copied_weights(model)


def shard_model(model: Model, loss_function: LossFunction, group: WorkerGroup) -> LossFunction:
    """Replace the parameters of a model by rows of them; return the loss function to train with."""
    root = LossModule(cast("nn.Module", model), loss_function)
    mesh = init_device_mesh(next(model.parameters()).device.type, (group.size,))
    for module in (*gathered_modules(model), root):
        module.register_forward_pre_hook(forget_packed)  # FSDP2 gathers before, and drops after
        module.register_forward_hook(forget_packed)
        fully_shard(module, mesh=mesh)
        sharded = cast("FSDPModule", module)
        sharded.set_gradient_divide_factor(1.0)  # the loop divides by the number of tokens
        sharded.set_force_sum_reduction_for_comms(True)  # other reductions do not exist in gloo
    # No output of a gathered module is changed in place.
    warnings.filterwarnings("ignore", "FSDP2-wrapped module .* returned a view tensor")

    def sharded_loss(batch: object, step: int) -> Loss:
        return Loss(*root(batch, step))

    return sharded_loss


def forget_packed(module: nn.Module, *_: object) -> None:
    """Free packed weights; gathered weights change from step to step without a new version."""
    release_packed_weights(module)


class LossModule(nn.Module):
    """The loss of a task as a module, whose call gathers the weights outside of blocks.

    So a task may call any method of the model, and read the weights of its embeddings.
    """

    def __init__(self, model: nn.Module, loss_function: LossFunction):
        super().__init__()
        self.model, self.loss_function = model, loss_function

    def forward(self, batch: object, step: int) -> tuple[Tensor, int]:
        loss = self.loss_function(batch, step)
        return loss.total, loss.count


def own_rows(tensor: Tensor, like: Tensor) -> Tensor:
    """Return the rows of a whole tensor that this process keeps, if `like` is sharded."""
    if not isinstance(like, DTensor):
        return tensor
    rows = distribute_tensor(tensor, like.device_mesh, like.placements, src_data_rank=None)
    return rows.clone()


def drop_parameters(model: nn.Module) -> None:
    """Free the memory of all parameters."""
    for parameter in model.parameters():
        parameter.data = parameter.data.new_empty(0)
