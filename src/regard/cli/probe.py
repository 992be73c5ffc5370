"""`regard probe`: how far gradients reach back in time, for an Elman network, a GRU and an LSTM."""

import json
import math
from pathlib import Path
from typing import Annotated

import typer


def probe(
    length: Annotated[int, typer.Option(min=2, help="Steps to look back over.")] = 100,
    hidden: Annotated[int, typer.Option(min=1, help="Width of the states and inputs.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Random sequences to average over.")] = 32,
    bias: Annotated[
        float | None,
        typer.Option(help="Bias of the gates that keep; ln(length - 1) unless given."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same curves.")] = 0,
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw to this .png or .svg file.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, for scripts.")] = False,
) -> None:
    """Measure |dJ_t / dh_k|, how much a loss feels of a state that is t - k steps back.

    Untrained cells, all started in the same way: orthogonal recurrent weights. At each step the
    plain network rewrites its state, so the gradient vanishes; the GRU and the LSTM keep it as far
    as their gates let them. How far is set by the bias of the keep gate z and of the forget gate f:
    ln(length - 1) keeps a share of 1 - 1/length of the state.
    """
    from rich.console import Console

    from regard.view import curve
    from regard.view.terminal import Surface

    if save is not None:
        curve.check_path(save)
    bias = math.log(length - 1) if bias is None else bias
    with Console(stderr=True).status(f"looking back over {length} steps"):
        curves = measure_gradients(length, hidden, batch, bias, seed)
    distances = list(range(length + 1))
    labels = curve.ChartLabels(
        f"How far the gradient reaches back: hidden {hidden}, gate bias {bias:.2f}, seed {seed}",
        "distance t - k, in steps",
        "|dJ_t/dh_k| / |dJ_t/dh_t|",
    )
    if save is not None:
        curve.save_log_chart(save, curves, distances, labels)
    if as_json:
        setting = {"length": length, "hidden": hidden, "batch": batch, "bias": bias, "seed": seed}
        finite = {  # JSON has no word for what is too large or is not a number
            name: [value if math.isfinite(value) else None for value in values]
            for name, values in curves.items()
        }
        print(json.dumps({"setting": setting, "distance": distances, "gradient": finite}))
        return
    print(curve.render_log_chart(curves, distances, labels, Surface.from_console(Console())))
    print("\n" + curve_table(curves, length))
    if save is not None:
        print(f"\nDrawn to {save}")


def measure_gradients(
    length: int, hidden: int, batch: int, bias: float, seed: int
) -> dict[str, list[float]]:
    """For each cell the gradient at distances 0 to `length`, as a share of that at distance 0.

    The state has first run over as many inputs again, unmeasured: a memory that starts empty is not
    typical.
    """
    import torch

    from regard.layers.cells import GRU, LSTM, Elman
    from regard.layers.gradient_probe import gradient_by_distance

    torch.set_num_threads(1)  # steps this small gain nothing from more
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
    """The curves in numbers, at four distances."""
    distances = sorted({1, length // 4, length // 2, length} - {0})
    head = f"{'distance':<9}" + "".join(f"{distance:>10}" for distance in distances)
    rows = [
        f"{name:<9}" + "".join(f"{values[distance]:>10.1e}" for distance in distances)
        for name, values in curves.items()
    ]
    return "\n".join([head, *rows])
