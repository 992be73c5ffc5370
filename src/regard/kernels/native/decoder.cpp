// A step of a decoder with additive attention, a GRU and a deep output (layers/prepared_decoder.py).

#include <algorithm>
#include <memory>
#include <utility>

#include "kernels.h"
#include "threads.h"

namespace {

// Memory for the matrices of a call, which are not set to zero.
class Scratch {
   public:
    explicit Scratch(int64_t count) : numbers_(new float[count]), next_(numbers_.get()) {}
    float* take(int64_t count) { return std::exchange(next_, next_ + count); }

   private:
    std::unique_ptr<float[]> numbers_;
    float* next_;
};

constexpr int64_t kLeastRows = 8;  // of a thread: with fewer, each reads all weights for little

// Columns of the products are those of `DecoderWeights`.
void step_rows(const DecoderStep& d, const float* exp_keys, const float* values, const bool* valid,
               int64_t slots, const int64_t* origin, const int64_t* tokens, const float* s,
               float* next_s, float* log_probs, int64_t rows) {
    const int64_t hidden = d.hidden, joint = d.word.outputs, width = d.word.inputs;
    const int64_t readout = joint - 3 * hidden, values_width = d.context.inputs;
    Scratch scratch(rows * (width + 2 * joint + d.state.outputs + values_width + 3 * hidden +
                            2 * readout));
    float *words = scratch.take(rows * width), *of_word = scratch.take(rows * joint);
    for (int64_t row = 0; row < rows; ++row) {
        std::copy_n(d.words + tokens[row] * width, width, words + row * width);
    }
    multiply_panels(&d.word, words, width, of_word, joint, rows);
    float* of_state = scratch.take(rows * d.state.outputs);
    multiply_panels(&d.state, s, hidden, of_state, d.state.outputs, rows);
    float *context = scratch.take(rows * values_width), *of_context = scratch.take(rows * joint);
    attend_additive(of_state, d.state.outputs, exp_keys, d.energy, values, valid, origin, context,
                    rows, slots, d.units, values_width);
    multiply_panels(&d.context, context, values_width, of_context, joint, rows);

    const float* u = of_state + d.units;
    if (d.resets_before) {
        float *reset = scratch.take(rows * hidden), *keep = scratch.take(rows * hidden),
              *fresh = scratch.take(rows * hidden);
        gru_gates(of_word, joint, of_context, joint, u, d.state.outputs, s, reset, keep, rows,
                  hidden);
        multiply_panels(&d.fresh, reset, hidden, fresh, hidden, rows);
        gru_state(of_word + 2 * hidden, joint, of_context + 2 * hidden, joint, fresh, hidden, keep,
                  s, next_s, rows, hidden);
    } else {
        gru_step(of_word, joint, of_context, joint, u, d.state.outputs, s, next_s, rows, hidden);
    }
    const float* of_read = of_state + d.state.outputs - readout;
    int64_t read_step = d.state.outputs;
    if (d.reads_current) {
        float* of_next = scratch.take(rows * readout);
        multiply_panels(&d.readout, next_s, hidden, of_next, readout, rows);
        of_read = of_next, read_step = readout;
    }
    float* t = scratch.take(rows * readout);
    const int64_t t_width = readout / d.pieces;
    sum_maxout(of_word + 3 * hidden, joint, of_context + 3 * hidden, joint, of_read, read_step, t,
               rows, t_width, d.pieces);
    multiply_panels(&d.output, t, t_width, log_probs, d.output.outputs, rows);
    log_softmax_rows(log_probs, rows, d.output.outputs);
}

}  // namespace

// Reads a token in each row: log-probabilities of the next one, and the new state. Returns 0 if one
// of them is not in the vocabulary.
int64_t decoder_step(const DecoderStep* decoder, const float* exp_keys, const float* values,
                     const bool* valid, int64_t slots, const int64_t* origin,
                     const int64_t* tokens, const float* s, float* next_s, float* log_probs,
                     int64_t rows, int64_t threads) {
    const int64_t hidden = decoder->hidden, outputs = decoder->output.outputs;
    for (int64_t row = 0; row < rows; ++row) {
        if (tokens[row] < 0 || tokens[row] >= decoder->vocabulary) return 0;
    }
    run_shares(rows, kLeastRows, threads, [&](int64_t first, int64_t count) {
        step_rows(*decoder, exp_keys, values, valid, slots, origin + first, tokens + first,
                  s + first * hidden, next_s + first * hidden, log_probs + first * outputs, count);
    });
    return 1;
}
