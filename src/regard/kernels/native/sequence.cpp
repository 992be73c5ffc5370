// A GRU over sequences in inference, in one call (kernels/gru.py).

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels.h"
#include "threads.h"

namespace {

constexpr int64_t kLeastRows = 4, kLeastPositions = 64;  // of a thread

// The steps of some rows of s, the first of which is `first_row`.
void run_rows(const GruSequence* gru, const float* projected, const int64_t* counts,
              const int64_t* firsts, int64_t steps, int64_t row_step, bool is_backward, float* s,
              float* outputs, int64_t output_step, int64_t first_row, int64_t rows) {
    const int64_t hidden = gru->hidden, gates = 3 * hidden, of_state = gru->state.outputs;
    const int64_t a_step = row_step * gates;
    std::vector<float> buffer(rows * (of_state + 3 * hidden)), none(gates);
    float *u = buffer.data(), *reset = u + rows * of_state, *keep = reset + rows * hidden,
          *fresh = keep + rows * hidden;
    s += first_row * hidden;
    for (int64_t number = 0; number < steps; ++number) {
        const int64_t t = is_backward ? steps - 1 - number : number;
        const int64_t count = std::min(rows, counts[t] - first_row);
        if (count <= 0) continue;
        const int64_t position = firsts[t] + first_row * row_step;
        const float* a = projected + position * gates;
        multiply_panels(&gru->state, s, hidden, u, of_state, count);
        if (gru->resets_before) {
            gru_gates(a, a_step, none.data(), 0, u, of_state, s, reset, keep, count, hidden);
            multiply_panels(&gru->fresh, reset, hidden, fresh, hidden, count);
            gru_state(a + 2 * hidden, a_step, none.data(), 0, fresh, hidden, keep, s, s, count,
                      hidden);
        } else {
            gru_step(a, a_step, none.data(), 0, u, of_state, s, s, count, hidden);
        }
        for (int64_t row = 0; row < count; ++row) {
            std::copy_n(s + row * hidden, hidden,
                        outputs + (position + row * row_step) * output_step);
        }
    }
}

}  // namespace

// The rows of x and of the outputs are positions. Step t has counts[t] of them: the first one is
// firsts[t], and the others follow at distances of `row_step`. They belong to the first rows of s,
// which is overwritten by their states after each step; other rows keep theirs.
void gru_sequence(const GruSequence* gru, const float* x, int64_t positions, const int64_t* counts,
                  const int64_t* firsts, int64_t steps, int64_t row_step, int64_t is_backward,
                  float* s, float* outputs, int64_t output_step, int64_t rows,
                  int64_t threads) {
    const int64_t inputs = gru->input.inputs, gates = 3 * gru->hidden;
    const std::unique_ptr<float[]> projected(new float[positions * gates]);
    run_shares(positions, kLeastPositions, threads, [&](int64_t first, int64_t count) {
        multiply_panels(&gru->input, x + first * inputs, inputs, projected.get() + first * gates,
                        gates, count);
    });
    run_shares(rows, kLeastRows, threads, [&](int64_t first, int64_t count) {
        run_rows(gru, projected.get(), counts, firsts, steps, row_step, is_backward, s, outputs,
                 output_step, first, count);
    });
}
