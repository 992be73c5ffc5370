"""Distances that are not known, from those that are: triangle updates beside axial attention.

    python benchmarks/triangles.py [--steps 600] [--blocks 1 2 3]

Points in three dimensions; a share of their distances is shown, the others are to be told. A
distance is bounded by the two other sides of every triangle, so a model that asks third edges can
know more than one that looks along rows and columns alone, with as many weights; and longer paths
take more blocks. Both are the same Evoformer, with "both" triangles and "axial".
"""

import argparse
import time

import torch
from torch import Tensor, nn

from regard.layers.evoformer import EvoformerBlock, parameter_count

POINTS, SHOWN, DIM = 12, 0.35, 32


class Completer(nn.Module):
    """Pairs through blocks; the alignment is one empty sequence."""

    def __init__(self, blocks: int, triangles: bool):
        super().__init__()
        sizes = {"heads": 1, "pair_heads": 4, "head_dim": 8, "dropout": 0.0, "pair_dropout": 0.0}
        self.shown = nn.Linear(2, DIM)
        self.blocks = nn.ModuleList(
            EvoformerBlock(4, DIM, triangles="both" if triangles else "axial", **sizes)
            for _ in range(blocks)
        )
        self.told = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 1))

    def forward(self, distances: Tensor, known: Tensor) -> Tensor:
        z = self.shown(torch.stack([distances * known, known], -1))
        m = z.new_zeros(len(z), 1, z.shape[1], 4)
        for block in self.blocks:
            m, z = block(m, z)
        told = self.told(z)[..., 0]
        return (told + told.mT) / 2


def batch(size: int, draw: torch.Generator) -> tuple[Tensor, Tensor]:
    points = torch.rand(size, POINTS, 3, generator=draw)
    known = torch.rand(size, POINTS, POINTS, generator=draw) < SHOWN
    known = known.triu(1)
    known = known | known.mT | torch.eye(POINTS, dtype=torch.bool)
    return torch.cdist(points, points), known.float()


def error(model: nn.Module, distances: Tensor, known: Tensor) -> Tensor:
    hidden = 1 - known
    return ((model(distances, known) - distances).pow(2) * hidden).sum() / hidden.sum()


def trained(blocks: int, triangles: bool, steps: int) -> tuple[float, int, float]:
    """The root of the mean squared error on new points, the weights, and seconds of training."""
    torch.manual_seed(0)
    model, draw = Completer(blocks, triangles), torch.Generator().manual_seed(1)
    optimiser = torch.optim.Adam(model.parameters(), 2e-3)
    falling = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, 1e-4)
    began = time.process_time()
    for _ in range(steps):
        optimiser.zero_grad()
        loss = error(model, *batch(32, draw))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        falling.step()
    seconds = time.process_time() - began
    with torch.no_grad():
        final = error(model, *batch(500, torch.Generator().manual_seed(2)))
    return final.sqrt().item(), parameter_count(model), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--blocks", type=int, nargs="+", default=[1, 2, 3])
    given = parser.parse_args()
    torch.set_num_threads(1)
    distances, known = batch(500, torch.Generator().manual_seed(2))
    hidden = known == 0
    plain = distances[hidden].std().item()
    print(f"the mean of all: {plain:.4f}")
    print("blocks  pairs      weights   error  CPU s")
    for blocks in given.blocks:
        for triangles in (False, True):
            found, weights, seconds = trained(blocks, triangles, given.steps)
            name = "triangles" if triangles else "axial"
            print(f"{blocks:6}  {name:9} {weights:8,}  {found:.4f} {seconds:6.0f}", flush=True)


if __name__ == "__main__":
    main()
