"""The kernels of a recurrent decoder and of a search compute what operations of torch compute."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from regard.attention.step_energy import step_energy
from regard.decoding.constraints import Constraints
from regard.decoding.greedy import greedy_search
from regard.errors import InputError
from regard.kernels import compiled
from regard.kernels.gru import GruGates, GruState, address, next_gru_state
from regard.kernels.log_probabilities import log_probabilities
from regard.kernels.prepared import Affine, PreparedLinear
from regard.layers import prepared_decoder
from regard.layers.prepared_decoder import PreparedDecoder
from regard.models.rnnsearch import PreparedState, RnnSearch, RnnSearchState

pytestmark = pytest.mark.skipif(compiled.native is None, reason="regard was built without them")
WIDTHS = [1, 7, 16, 70]


@pytest.mark.parametrize("width", WIDTHS)
def test_log_softmax(width, unchecked):
    logits = torch.randn(5, width) * torch.tensor([1.0, 30.0, 1e-3, 1e4, 1.0])[:, None]
    logits[4, 0] = -torch.inf if width > 1 else 0.0
    expected = logits.double().log_softmax(-1)
    actual = log_probabilities(logits.clone())
    torch.testing.assert_close(actual.double(), expected, rtol=1e-6, atol=2e-6)


def test_log_softmax_keeps_nan_and_gradients():
    logits = torch.tensor([[0.0, torch.nan, 1.0], [torch.inf, 0.0, 0.0], [0.0, 0.0, 0.0]])
    with torch.no_grad():
        result = log_probabilities(logits.clone())
    assert result[:2].isnan().all()
    assert result[2].isfinite().all()
    logits = torch.randn(2, 3, requires_grad=True)
    log_probabilities(logits)[0, 0].backward()
    assert logits.grad is not None


@pytest.mark.parametrize("width", WIDTHS)
def test_additive_attention(width, unchecked):
    rows, inputs, slots, units = 4, 3, 9, width
    query, keys = torch.randn(rows, units + 2), torch.randn(inputs, slots, units)
    query[0] = 1e3  # every tanh is saturated
    v, values = torch.randn(units), torch.randn(inputs, slots, width)
    valid = torch.rand(inputs, slots) < 0.7
    valid[0], valid[2] = True, False
    origin, context = torch.tensor([0, 1, 1, 2]), torch.empty(rows, width)
    exp_keys = (2 * keys).exp()
    for mask in (None, valid):
        compiled.native.attend_additive(
            *(*address(query, 2), exp_keys.data_ptr(), v.data_ptr(), values.data_ptr()),
            *(0 if mask is None else mask.data_ptr(), origin.data_ptr(), context.data_ptr()),
            *(rows, slots, units, width),
        )
        energy = (query[:, None, 2:] + keys[origin]).double().tanh() @ v.double()
        if mask is not None:
            energy = energy.masked_fill(~mask[origin], -torch.inf)
        weights = energy.softmax(-1).nan_to_num(0.0)
        expected = (weights[:, None] @ values[origin].double())[:, 0].float()
        torch.testing.assert_close(context, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("width", WIDTHS)
def test_gru_before_and_after_the_reset(width, unchecked):
    rows = 3
    a, b, s = torch.randn(rows, 3 * width + 1), torch.randn(3 * width), torch.randn(rows, width)
    weight, bias = torch.randn(3 * width, width), torch.randn(3 * width)
    gates, new = weight.split([2 * width, width])
    parts = a[:, 1:] + b
    r, z = (parts[:, : 2 * width] + s @ gates.T).sigmoid().chunk(2, -1)
    candidate = (parts[:, 2 * width :] + (r * s) @ new.T).tanh()
    sources, of_state = (address(a, 1), (b.data_ptr(), 0)), s @ gates.T
    new_product = PreparedLinear([Affine(new, None)])
    with torch.no_grad():
        actual = next_gru_state(compiled.native, *sources, address(of_state, 0), s, new_product)
        torch.testing.assert_close(actual, z * s + (1 - z) * candidate)
        of_state = s @ weight.T + bias
        actual = next_gru_state(compiled.native, *sources, address(of_state, 0), s, None)
    inputs = torch.eye(3 * width), torch.zeros(3 * width)
    expected = torch.gru_cell(parts, s, inputs[0], weight, inputs[1], bias)
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_maxout(pieces):
    a, b, c = (torch.randn(4, 5 * pieces + shift) for shift in range(3))
    a[1, 0] = torch.nan
    y = torch.empty(4, 5)
    sources = (*address(a, 0), *address(b, 1), *address(c, 2))
    compiled.native.sum_maxout(*sources, y.data_ptr(), 4, 5, pieces)
    expected = (a + b[:, 1:] + c[:, 2:]).unflatten(-1, (pieces, -1)).amax(-2)
    torch.testing.assert_close(y, expected, equal_nan=True)


@pytest.mark.parametrize("reset", ["before", "after"])
@pytest.mark.parametrize("readout", ["previous", "current"])
@torch.inference_mode()
def test_a_prepared_search_is_the_plain_one(reset, readout, seed, monkeypatch, unchecked):
    """Also after rows were selected, with padding, and with the encoder's GRU."""
    model, source, valid = small_model(reset, readout)
    results = list[torch.Tensor]()
    for native, kind in ((compiled.native, PreparedState), (None, RnnSearchState)):
        monkeypatch.setattr(compiled, "native", native)
        state = model.start(model.remember(source, valid))
        assert isinstance(state, kind)
        for step in range(6):
            tokens = 4 + (torch.arange(3 if step < 3 else 4) + step) % 7
            log_probs, state = model.step(state, tokens)
            results.append(log_probs)
            if step == 2:
                state = model.select(state, torch.tensor([2, 0, 0, 1]))
    for prepared, plain in zip(results[:6], results[6:], strict=True):
        torch.testing.assert_close(prepared, plain, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("max_size", [prepared_decoder.MAX_TABLE_SIZE, 0])
@torch.no_grad()
def test_products_of_words_are_kept_until_weights_change(max_size, seed, monkeypatch, unchecked):
    """The second step reads its words from the table, the last one a new table."""
    monkeypatch.setattr(prepared_decoder, "MAX_TABLE_SIZE", max_size)
    model, source, valid = small_model("before", "previous")
    tokens, states = torch.tensor([5, 7, 5]), list[torch.Tensor]()
    for weight in (None, model.target_words.weight):
        if weight is not None:
            weight.mul_(1.5)
        prepared, plain = start_both(model, source, valid, monkeypatch)
        expected = model.step(plain, tokens)[0]
        for _ in range(2):
            torch.testing.assert_close(model.step(prepared, tokens)[0], expected)
        states.append(prepared.decoder.weights.tensors[-1].clone())
    read = torch.zeros(12, dtype=torch.uint8)
    read[[5, 7]] = 2
    assert torch.equal(torch.stack(states), torch.stack([read, read])[:, : 12 if max_size else 0])


@torch.no_grad()
def test_threads_fill_the_table_of_words(seed, monkeypatch, unchecked):
    model, _, _ = small_model("before", "previous", target_size=300)
    source = torch.randint(4, 11, (64, 6))
    prepared, plain = start_both(model, source, source > 0, monkeypatch)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            tokens = torch.randint(300, (64,))
            calls = [pool.submit(step_once, model, prepared, tokens) for _ in range(8)]
            expected = model.step(plain, tokens)[0]
            for call in calls:
                torch.testing.assert_close(call.result(), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("size", [13, 767, 768, 769, 2000])
@torch.inference_mode()
def test_log_probabilities_of_several_blocks(size, seed, monkeypatch, unchecked):
    """The largest logits are in the first block, in the last one, or nowhere."""
    model, source, valid = small_model("before", "previous", target_size=size)
    tokens = torch.tensor([4, 5, 6])
    for shift in (torch.zeros(size), torch.arange(size) / 20, torch.arange(size).flip(0) / 20):
        model.output.bias.copy_(shift)
        prepared, plain = start_both(model, source, valid, monkeypatch)
        actual, expected = (model.step(state, tokens)[0] for state in (prepared, plain))
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    model.output.bias[:] = -torch.inf
    model.output.bias[-1] = -200.0
    prepared, plain = start_both(model, source, valid, monkeypatch)
    actual, expected = (model.step(state, tokens)[0] for state in (prepared, plain))
    torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("size", [13, 769, 2000])
@torch.inference_mode()
def test_the_best_token_is_that_of_all_log_probabilities(size, seed, unchecked):
    """Also among equals, and if all others are forbidden."""
    model, source, valid = small_model("before", "previous", target_size=size)
    state, tokens = model.start(model.remember(source, valid)), torch.tensor([4, 5, 6])
    best = int(model.step(state, tokens)[0][0].argmax())
    cases = [torch.tensor(ids, dtype=torch.long) for ids in ([], [best], [0, best, size - 1])]
    for equal in (False, True):
        if equal:
            model.output.weight.zero_()
            model.output.bias.copy_(torch.arange(size) % 5)
            state = model.start(model.remember(source, valid))
        for forbidden in (*cases, torch.arange(size - 1), torch.arange(size)):
            log_probs, s = model.step(state, tokens)
            log_probs[:, forbidden] = -torch.inf
            chosen, gained, chosen_state = model.choose(state, tokens, forbidden)
            assert chosen.tolist() == log_probs.argmax(1).tolist()
            assert gained.dtype == torch.float64
            torch.testing.assert_close(gained.float(), log_probs.amax(1))
            torch.testing.assert_close(chosen_state.s, s.s)


@torch.inference_mode()
def test_a_greedy_search_by_kernels_is_the_plain_one(seed, monkeypatch, unchecked):
    model, source, valid = small_model("before", "previous", target_size=900)
    rules = Constraints(max_length=9, min_length=4, forbidden=(0, 1, 17))
    memory, chosen = model.remember(source, valid), list[int]()
    kernel = PreparedDecoder.choose
    with monkeypatch.context() as patch:
        patch.setattr(PreparedDecoder, "choose", lambda *args: chosen.append(1) or kernel(*args))
        actual = greedy_search(model, memory, 3, rules)
    assert chosen
    monkeypatch.setattr(RnnSearch, "choose", lambda *_: None)
    for (output,), (plain,) in zip(actual, greedy_search(model, memory, 3, rules), strict=True):
        assert output.ids == plain.ids
        assert output.log_prob == pytest.approx(plain.log_prob, abs=1e-5)


@pytest.mark.parametrize("readout", ["previous", "current"])
@torch.inference_mode()
def test_rows_of_a_beam_share_projected_values(readout, seed, monkeypatch, unchecked):
    """Also when most inputs have left the search, and in an order of their own."""
    model, source, valid = small_model("before", readout)
    prepared, plain = start_both(model, source, valid, monkeypatch)
    assert isinstance(prepared.decoder, PreparedDecoder)
    for rows in ([0, 1, 2], [2, 0, 0, 1, 1, 2], [5, 0, 3]):
        prepared, plain = (model.select(state, torch.tensor(rows)) for state in (prepared, plain))
        tokens = torch.arange(len(rows)) + 4
        (actual, prepared), (expected, plain) = (
            model.step(state, tokens) for state in (prepared, plain)
        )
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
        assert (prepared.decoder.projected is None) == (rows == [0, 1, 2])


@torch.inference_mode()
def test_long_memories_are_not_projected(seed, monkeypatch, unchecked):
    monkeypatch.setattr(prepared_decoder, "MAX_PROJECTED_SLOTS", 5)
    model, source, valid = small_model("before", "previous")
    state = model.select(model.start(model.remember(source, valid)), torch.arange(3).repeat(2))
    model.step(state, torch.arange(6))
    assert isinstance(state, PreparedState)
    assert state.decoder.projected is None


@torch.inference_mode()
def test_nan_reaches_all_log_probabilities(seed, monkeypatch, unchecked):
    model, source, valid = small_model("before", "previous", target_size=2000)
    model.output.bias[3] = torch.nan
    prepared, _ = start_both(model, source, valid, monkeypatch)
    tokens = torch.tensor([4, 5, 6])
    assert model.step(prepared, tokens)[0].isnan().all()
    assert model.choose(prepared, tokens, tokens)[1].isnan().all()


@torch.inference_mode()
def test_rows_of_a_prepared_search_do_not_depend_on_others(seed, unchecked):
    model, source, valid = small_model("before", "previous")
    together = greedy_search(model, model.remember(source, valid), 3)
    for row in range(3):
        memory = model.remember(source[row : row + 1], valid[row : row + 1])
        assert greedy_search(model, memory, 1)[0][0].ids == together[row][0].ids


@torch.inference_mode()
def test_threads_share_the_rows_of_a_search(seed, unchecked):
    """Also in the encoder, with rows of unequal length."""
    model, _, _ = small_model("before", "previous")
    source = torch.randint(4, 11, (37, 6))
    valid = torch.arange(6) < torch.randint(1, 7, (37, 1))
    threads, results = torch.get_num_threads(), list[torch.Tensor]()
    try:
        for number in (1, 3):
            torch.set_num_threads(number)
            state = model.start(model.remember(source, valid))
            results.append(model.step(state, source[:, 0])[0])
    finally:
        torch.set_num_threads(threads)
    torch.testing.assert_close(results[0], results[1], rtol=1e-6, atol=1e-6)


@torch.inference_mode()
def test_a_token_outside_the_vocabulary_is_an_error(seed, unchecked):
    model, source, valid = small_model("before", "previous")
    state = model.start(model.remember(source, valid))
    with pytest.raises(InputError, match="ids hold 12"):
        model.step(state, torch.tensor([4, 12, 5]))


@torch.inference_mode()
def test_what_is_not_plain_keeps_the_plain_path(seed, unchecked):
    model, source, valid = small_model("before", "previous")
    memory = model.remember(source, valid)
    handle = model.cell.register_forward_hook(lambda *_: None)
    assert isinstance(model.start(memory), RnnSearchState)
    handle.remove()
    state = model.start(memory)
    assert isinstance(state, PreparedState)
    assert isinstance(state.decoder, PreparedDecoder)
    sparse = RnnSearch(11, 12, dim=5, hidden_dim=6, normalize="sparsemax").eval()
    assert isinstance(sparse.start(sparse.remember(source, valid)), RnnSearchState)


def start_both(model, source, valid, monkeypatch) -> tuple[PreparedState, RnnSearchState]:
    """Return the start of a search by kernels, and that of one without them."""
    states = list[PreparedState | RnnSearchState]()
    for native in (compiled.native, None):
        with monkeypatch.context() as patch:
            patch.setattr(compiled, "native", native)
            states.append(model.start(model.remember(source, valid)))
    assert isinstance(states[0], PreparedState)
    assert isinstance(states[1], RnnSearchState)
    return states[0], states[1]


@torch.no_grad()
def step_once(model: RnnSearch, state: PreparedState, tokens: torch.Tensor) -> torch.Tensor:
    return model.step(state, tokens)[0]


def small_model(
    reset: str, readout: str, target_size: int = 12
) -> tuple[RnnSearch, torch.Tensor, torch.Tensor]:
    sizes = {"dim": 5, "hidden_dim": 6, "align_dim": 7, "output_dim": 8}
    model = RnnSearch(11, target_size, **sizes, reset=reset, readout=readout)
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.5)
    source = torch.randint(4, 11, (3, 6))
    valid = torch.arange(6) < torch.tensor([6, 1, 4])[:, None]
    return model.eval(), source, valid


@pytest.mark.parametrize("width", WIDTHS)
def test_gradients_of_a_gru(width, unchecked):
    """First gradients by kernels, and those of the way that can be differentiated again."""
    raw, s = torch.randn(3, 2 * width), torch.randn(3, width)
    new, keep = torch.randn(3, width), torch.rand(3, width)
    pairs = [
        (GruGates.apply, plain_gates, (raw, s)),
        (GruState.apply, plain_state, (new, keep, s)),
    ]
    for function, plain, inputs in pairs:
        leaves = [part.clone().requires_grad_() for part in inputs]
        outputs, expected = as_tuple(function(*leaves)), as_tuple(plain(*leaves))
        torch.testing.assert_close(outputs, expected)
        weights = [torch.randn(3, width) for _ in outputs]
        wanted = torch.autograd.grad(expected, leaves, weights, retain_graph=True)
        for again in (False, True):
            gradients = torch.autograd.grad(
                outputs, leaves, weights, create_graph=again, retain_graph=True
            )
            torch.testing.assert_close(gradients, wanted)


@pytest.mark.parametrize("scale", [1e-20, 1e-4, 0.1, 0.6, 0.7, 3.0, 100.0])
def test_states_have_all_digits(scale, seed, unchecked):
    """Small states too, whose digits 1 - 2 / (e^{2x} + 1) would lose."""
    raw = scale * torch.cat([-torch.rand(1, 40), torch.rand(1, 40)], 1)
    state = GruState.apply(raw, torch.zeros_like(raw), torch.zeros_like(raw))
    torch.testing.assert_close(state.double(), raw.double().tanh(), rtol=4e-7, atol=0.0)


def plain_gates(raw: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    r, z = raw.sigmoid().chunk(2, -1)
    return r * s, z


def plain_state(raw: torch.Tensor, keep: torch.Tensor, s: torch.Tensor) -> torch.Tensor:
    return keep * s + (1 - keep) * raw.tanh()


def as_tuple(outputs) -> tuple[torch.Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


@pytest.mark.parametrize("width", WIDTHS)
def test_energies_of_steps_and_their_gradients(width, seed, unchecked):
    """Two steps share their keys; one query saturates every tanh."""
    keys, v = torch.randn(3, 5, width), torch.randn(width)
    queries = [torch.randn(3, width), torch.randn(3, width)]
    queries[0][1] = 60.0
    leaves = [part.clone().requires_grad_() for part in (keys, v, *queries)]
    weights = [torch.randn(3, 5) for _ in queries]
    energy = step_energy(leaves[0], leaves[1])
    actual = [energy(query) for query in leaves[2:]]
    expected = [(query[:, None] + leaves[0]).tanh() @ leaves[1] for query in leaves[2:]]
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    gradients = torch.autograd.grad(actual, leaves, weights)
    wanted = torch.autograd.grad(expected, leaves, weights)
    torch.testing.assert_close(gradients, wanted, rtol=1e-4, atol=1e-5)


def test_a_model_has_the_same_gradients_without_kernels(seed, monkeypatch, unchecked):
    model, source, valid = small_model("before", "previous")
    target, results = torch.randint(4, 11, (3, 5)), []
    for native in (compiled.native, None):
        monkeypatch.setattr(compiled, "native", native)
        model.zero_grad()
        model.teacher_forced(model.remember(source, valid), target).square().sum().backward()
        results.append([weight.grad for weight in model.parameters() if weight.grad is not None])
    assert len(results[0]) > 15
    torch.testing.assert_close(results[0], results[1], rtol=1e-4, atol=1e-4)
