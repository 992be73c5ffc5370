// A GRU over sequences in inference, in one call (kernels/gru.py).

#include <algorithm>
#include <memory>
#include <vector>

#include "kernels.h"

// The rows of x and of the outputs are positions. Step t has counts[t] of them: the first one is
// firsts[t], and the others follow at distances of `row_step`. They belong to the first rows of s,
// which is overwritten by their states after each step; other rows keep theirs.
void gru_sequence(const GruSequence* gru, const float* x, int64_t positions, const int64_t* counts,
                  const int64_t* firsts, int64_t steps, int64_t row_step, int64_t is_backward,
                  float* s, float* outputs, int64_t output_step) {
    const int64_t hidden = gru->hidden, gates = 3 * hidden, of_state = gru->state.outputs;
    const std::unique_ptr<float[]> projected(new float[positions * gates]);
    multiply_panels(&gru->input, x, gru->input.inputs, projected.get(), gates, positions);
    const int64_t rows = *std::max_element(counts, counts + steps);
    std::vector<float> buffer(rows * (of_state + 3 * hidden)), none(gates);
    float *u = buffer.data(), *reset = u + rows * of_state, *keep = reset + rows * hidden,
          *fresh = keep + rows * hidden;
    for (int64_t number = 0; number < steps; ++number) {
        const int64_t t = is_backward ? steps - 1 - number : number, count = counts[t];
        const float* a = projected.get() + firsts[t] * gates;
        const int64_t a_step = row_step * gates;
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
                        outputs + (firsts[t] + row * row_step) * output_step);
        }
    }
}
