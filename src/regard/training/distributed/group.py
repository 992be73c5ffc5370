"""The group of processes that train one model: what they sum, and what the first one decides.

Every process holds the model, whole or sharded (`sharding.py`), and computes the gradient of its
share of each batch. The sums over all processes are divided by the number of all tokens, so that
the result is that of one process. The process of rank 0 validates, and writes all files.
"""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar
from uuid import uuid4

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from regard.batching.device import CPU, find_device
from regard.errors import InputError
from regard.tasks.tensor_file import is_sharded
from regard.training.signals import StopRequested

T = TypeVar("T")

# Waiting for a validation may take long; a process that has died is noticed at once.
TIMEOUT = timedelta(days=1)
BUCKET_BYTES = 25 * 2**20  # of gradients that are summed in one message
LOST_PROCESS_CODE = 75  # exit code of a process that has lost another (EX_TEMPFAIL)
CONNECTION_ERROR = re.compile("gloo|nccl|connection (closed|reset|refused)|peer", re.IGNORECASE)
FAILURE_KEY = "failures"
SECONDS_BETWEEN_ANSWERS = 0.01  # of the first process, while the others start


@dataclass(frozen=True)
class WorkerGroup:
    """The processes of a training and the rank of this one; by default it is alone."""

    rank: int = 0
    size: int = 1
    seed: int = 0
    device: str = "cpu"  # of this process

    @property
    def is_main(self) -> bool:
        """Return whether this process validates and writes the files."""
        return self.rank == 0

    def seed_step(self, step: int) -> None:
        """Give each process and device random numbers that depend on the step alone.

        So a checkpoint needs the random state of one process on a CPU only, and a resumed training
        repeats those of the others.
        """
        if self.size > 1 or self.device != "cpu":
            torch.manual_seed(hash((self.seed, step, self.rank)) % 2**63)

    def sums(self, values: Sequence[int | float]) -> list[int | float]:
        """Return the sums of these numbers over all processes."""
        if self.size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        dist.all_reduce(tensor)
        return tensor.tolist()

    def largest(self, value: int) -> int:
        """Return the largest of the numbers of all processes."""
        if self.size == 1:
            return value
        tensor = torch.tensor(value, device=self.device)
        dist.all_reduce(tensor, dist.ReduceOp.MAX)
        return int(tensor)

    def sum_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace gradients by their sums; one that no process has stays None.

        Those of sharded parameters are sums after the backward pass already.
        """
        if self.size == 1:
            return
        trained = [p for p in parameters if p.requires_grad and not is_sharded(p)]
        has_gradient = torch.tensor([p.grad is not None for p in trained], device=self.device)
        counts = has_gradient.int()
        dist.all_reduce(counts)
        gradients: list[Tensor] = []
        for parameter, count in zip(trained, counts.tolist(), strict=True):
            if count:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                gradients.append(parameter.grad)
        for bucket in buckets(gradients):
            flat = torch.cat([gradient.reshape(-1) for gradient in bucket])
            dist.all_reduce(flat)
            parts = flat.split([gradient.numel() for gradient in bucket])
            for gradient, part in zip(bucket, parts, strict=True):
                gradient.copy_(part.view_as(gradient))

    def copy_from_main(self, tensors: Iterable[Tensor]) -> None:
        """Overwrite tensors by those of the first process."""
        if self.size > 1:
            for tensor in tensors:
                dist.broadcast(tensor.detach(), 0)

    def from_main(self, compute: Callable[[], T]) -> T:
        """Compute plain data in the first process, and return it in all of them.

        A fault of the user and a stop signal are raised in all of them, too.
        """
        if self.size == 1:
            return compute()
        if not self.is_main:
            return decode_outcome(self.broadcast_bytes(b""))
        try:
            result = compute()
        except (InputError, StopRequested) as error:
            self.broadcast_bytes(encode_error(error))
            raise
        self.broadcast_bytes(json.dumps({"result": result}).encode())
        return result

    def broadcast_bytes(self, data: bytes) -> bytes:
        """Return the bytes that the first process gives."""
        length = torch.tensor(len(data), device=self.device)
        dist.broadcast(length, 0)
        buffer = torch.zeros(int(length), dtype=torch.uint8, device=self.device)
        if self.is_main:
            buffer.copy_(torch.frombuffer(bytearray(data), dtype=torch.uint8))
        dist.broadcast(buffer, 0)
        return bytes(buffer.tolist())

    def agreed_stop(self, number: signal.Signals | None) -> signal.Signals | None:
        """Return the stop signal that any process has received, so that all end after one step."""
        highest = self.largest(0 if number is None else int(number))
        return signal.Signals(highest) if highest else None


def buckets(tensors: Iterable[Tensor]) -> Generator[list[Tensor]]:
    """Yield runs of tensors of one type with at most `BUCKET_BYTES`; a larger one is alone."""
    bucket, size = list[Tensor](), 0
    for tensor in tensors:
        if bucket and (size + tensor.nbytes > BUCKET_BYTES or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, size = [], 0
        bucket.append(tensor)
        size += tensor.nbytes
    if bucket:
        yield bucket


def encode_error(error: BaseException) -> bytes:
    kind = "stop" if isinstance(error, StopRequested) else "error"
    return json.dumps({kind: str(error)}).encode()


def decode_outcome(data: bytes) -> Any:
    """Return the result in an outcome of the first process, or raise its error."""
    outcome = json.loads(data)
    if "stop" in outcome:
        raise StopRequested
    if "error" in outcome:
        raise InputError(outcome["error"])
    return outcome["result"]


def is_worker() -> bool:
    """Return whether torchrun, or `--processes`, has started this process as one of a group."""
    return "RANK" in os.environ and "WORLD_SIZE" in os.environ


@contextmanager
def join_group(seed: int, device: str = "cpu") -> Generator[WorkerGroup]:
    """Join the group that the environment describes, or train alone, on a device of this name.

    If several processes fail, only the first one reports its error. A process that has lost
    another ends with `LOST_PROCESS_CODE`, so that its launcher starts all of them again.
    """
    if not is_worker():
        yield WorkerGroup(seed=seed, device=str(find_device(device)))
        return
    own_device = find_own_device(device)
    backend = "nccl" if own_device.type == "cuda" else "gloo"
    tcp_store, rank, size = next(rendezvous("env://", timeout=TIMEOUT))
    store = PrefixStore(agreed_start(tcp_store, rank, size), tcp_store)
    try:
        dist.init_process_group(backend, store=store, rank=rank, world_size=size, timeout=TIMEOUT)
        yield WorkerGroup(rank, size, seed, str(own_device))
    except Exception as error:
        if not is_connection_error(error):
            if store.add(FAILURE_KEY, 1) == 1:
                raise
            raise SystemExit(1) from error
        raise SystemExit(1 if has_failed(store) else LOST_PROCESS_CODE) from error
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()  # closes connections, so that no process waits for this


def has_failed(store: Store) -> bool:
    """Return whether a process of this start has reported an error."""
    try:
        return store.add(FAILURE_KEY, 0) > 0
    except dist.DistError:  # the store has ended with the process that held it
        return False


def agreed_start(store: Store, rank: int, size: int) -> str:
    """Return a new name of this start, on which all processes of the group agree.

    The store may outlive the processes, and keys of earlier starts must not be read. Restarts are
    counted differently on each host. So every process sends the first one a word that is new, and
    waits for the answer to it.
    """
    name = uuid4().hex
    if rank:
        store.set(f"request/{rank}", name)
        answer = store.get(f"answer/{name}").decode()
        store.add(f"joined/{answer}", 1)
        return answer
    while store.add(f"joined/{name}", 0) < size - 1:
        for other in range(1, size):
            if store.check([f"request/{other}"]):
                request = store.get(f"request/{other}").decode()
                store.set(f"answer/{request}", name)
        time.sleep(SECONDS_BETWEEN_ANSWERS)
    return name


def find_own_device(name: str) -> torch.device:
    """Return the device of this process of a group: each process has a GPU of its own."""
    device = find_device(name)
    if device.type == "mps" and name != "auto":
        raise InputError("train.device: mps serves one process only; use one process, or the cpu")
    if device.type != "cuda":
        return CPU
    own_device = find_device(f"cuda:{os.environ['LOCAL_RANK']}")
    torch.cuda.set_device(own_device)
    return own_device


def restart_count() -> int:
    """Return how often the processes of this host were started again after one has died."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))


def is_connection_error(error: Exception) -> bool:
    """Return whether an operation failed because another process has ended."""
    if isinstance(error, dist.DistError):
        return True
    return isinstance(error, RuntimeError) and bool(CONNECTION_ERROR.search(str(error)))
