"""`regard probe`: gradients over time of an Elman network, a GRU and an LSTM."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import JsonOption


def probe(
    length: Annotated[int, typer.Option(min=2, help="Greatest distance t - k, in steps.")] = 100,
    hidden: Annotated[int, typer.Option(min=1, help="Dimension of states and inputs.")] = 64,
    batch: Annotated[
        int, typer.Option(min=1, help="Number of random sequences to average over.")
    ] = 32,
    bias: Annotated[
        float | None,
        typer.Option(
            help="Bias of the update gate of the GRU and of the forget gate of the LSTM. "
            "Default: ln(length - 1)."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of weights and inputs.")] = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for a plot: .png or .svg.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Measure |dJ_t / dh_k|: how much the loss at step t depends on the state at step k.

    The cells are untrained, with orthogonal recurrent weights. An Elman network rewrites its state
    at each step, so its gradient vanishes. The gates of the GRU and of the LSTM keep a part of the
    state, and the bias decides how much: ln(length - 1) keeps 1 - 1/length of it at each step.
    """
    from rich.console import Console

    from regard.view import curve
    from regard.view.terminal import Surface

    if save is not None:
        curve.check_path(save)
    bias = math.log(length - 1) if bias is None else bias
    with Console(stderr=True).status(f"measuring gradients over {length} steps"):
        curves = measure_gradients(length, hidden, batch, bias, seed)
    distances = list(range(length + 1))
    labels = curve.ChartLabels(
        f"Gradient over time: hidden {hidden}, gate bias {bias:.2f}, seed {seed}",
        "distance t - k, in steps",
        "|dJ_t/dh_k| / |dJ_t/dh_t|",
    )
    if save is not None:
        curve.save_log_chart(save, curves, distances, labels)
    if as_json:
        setting = {"length": length, "hidden": hidden, "batch": batch, "bias": bias, "seed": seed}
        finite = {  # JSON has neither infinity nor nan
            name: [value if math.isfinite(value) else None for value in values]
            for name, values in curves.items()
        }
        print(json.dumps({"setting": setting, "distance": distances, "gradient": finite}))
        return
    print(curve.render_log_chart(curves, distances, labels, Surface.from_console(Console())))
    print("\n" + curve_table(curves, length))
    if save is not None:
        print(f"\n{save}: written")


def measure_gradients(
    length: int, hidden: int, batch: int, bias: float, seed: int
) -> dict[str, list[float]]:
    """Return the gradient of each cell at distances 0 to `length`, relative to distance 0.

    Each cell first reads `length` inputs that are not measured, because an initial state of zeros
    is not typical.
    """
    import torch

    from regard.layers.cells import GRU, LSTM, Elman
    from regard.layers.gradient_probe import gradient_by_distance

    torch.set_num_threads(1)  # steps this small do not get faster with more threads
    torch.manual_seed(seed)
    cells = {
        "Elman": Elman(hidden, hidden),
        "GRU": GRU(hidden, hidden, keep_bias=bias),
        "LSTM": LSTM(hidden, hidden, forget_bias=bias),
    }
    inputs = torch.randn(batch, 2 * length, hidden, dtype=torch.float64)
    curves: dict[str, list[float]] = {}
    for name, cell in cells.items():
        state = cell.double().initial_state(batch)
        with torch.no_grad():
            for x in inputs[:, :length].unbind(1):
                state = cell(x, state)
        norms = gradient_by_distance(cell, inputs[:, length:], state)
        curves[name] = (norms / norms[0]).tolist()
    return curves


def curve_table(curves: dict[str, list[float]], length: int) -> str:
    """Return a table of the curves at four distances."""
    distances = sorted({1, length // 4, length // 2, length} - {0})
    head = f"{'distance':<9}" + "".join(f"{distance:>10}" for distance in distances)
    rows = [
        f"{name:<9}" + "".join(f"{values[distance]:>10.1e}" for distance in distances)
        for name, values in curves.items()
    ]
    return "\n".join([head, *rows])
