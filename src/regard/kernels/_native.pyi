"""Functions of `native/*.cpp`: a pointer is the address of a tensor, or 0 for none."""

def quantize_rows(x: int, numbers: int, scales: int, rows: int, width: int, /) -> None: ...
def attend_step(
    query: int,
    query_step: int,
    keys: int,
    values: int,
    input_step: int,
    group_step: int,
    slot_step: int,
    mask: int,
    owners: int,
    owner_step: int,
    new_keys: int,
    new_values: int,
    context: int,
    rows: int,
    rows_per_input: int,
    heads: int,
    groups: int,
    slots: int,
    dim: int,
    scale: float,
    /,
) -> None: ...

attend_step_unlocked = attend_step

def finish_rows(
    y: int,
    scales: int,
    bias: int,
    is_relu: int,
    residual: int,
    gain: int,
    shift: int,
    epsilon: float,
    rows: int,
    width: int,
    /,
) -> None: ...
