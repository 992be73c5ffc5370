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
def attend_additive(
    query: int,
    query_stride: int,
    exp_keys: int,
    v: int,
    values: int,
    valid: int,
    origin: int,
    context: int,
    rows: int,
    slots: int,
    units: int,
    width: int,
    /,
) -> None: ...
def gru_gates(
    a: int,
    a_stride: int,
    b: int,
    b_stride: int,
    u: int,
    u_stride: int,
    s: int,
    reset: int,
    keep: int,
    rows: int,
    width: int,
    /,
) -> None: ...
def gru_state(
    a: int,
    a_stride: int,
    b: int,
    b_stride: int,
    u: int,
    u_stride: int,
    keep: int,
    s: int,
    next_s: int,
    rows: int,
    width: int,
    /,
) -> None: ...
def gru_step(
    a: int,
    a_stride: int,
    b: int,
    b_stride: int,
    u: int,
    u_stride: int,
    s: int,
    next_s: int,
    rows: int,
    width: int,
    /,
) -> None: ...
def sum_maxout(
    a: int,
    a_stride: int,
    b: int,
    b_stride: int,
    c: int,
    c_stride: int,
    y: int,
    rows: int,
    width: int,
    pieces: int,
    /,
) -> None: ...
def log_softmax_rows(x: int, rows: int, width: int, /) -> None: ...
def argmax_rows(x: int, columns: int, rows: int, width: int, /) -> None: ...
def top_sums(
    log_probs: int,
    scores: int,
    values: int,
    indices: int,
    inputs: int,
    beams: int,
    width: int,
    count: int,
    /,
) -> None: ...
