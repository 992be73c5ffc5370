// A step of a decoder with additive attention, a GRU and a deep output (layers/prepared_decoder.py).

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

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

constexpr int64_t kBlock = 16 * kPanel;  // logits of a row that are in the cache at once
constexpr int64_t kLeastRows = 8;  // of a thread: with fewer, each reads all weights for little

// A row of the table is written once, by the thread that claims it; nobody waits for it.
typedef std::atomic<uint8_t> RowState;
static_assert(sizeof(RowState) == 1 && RowState::is_always_lock_free);
constexpr uint8_t kEmpty = 0, kClaimed = 1, kReady = 2;

// x W' + b of each word, from the table of the words that were read before. `words` and `fresh` have
// room for all rows.
void project_words(const DecoderStep& d, const int64_t* tokens, float* words, float* fresh,
                   float* of_word, int64_t rows) {
    const int64_t width = d.word.inputs, joint = d.word.outputs;
    RowState* const states = reinterpret_cast<RowState*>(d.projection_states);
    std::vector<int64_t> missing;
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t token = tokens[row];
        if (states && states[token].load(std::memory_order_acquire) == kReady) {
            std::copy_n(d.projections + token * joint, joint, of_word + row * joint);
            continue;
        }
        std::copy_n(d.words + token * width, width, words + missing.size() * width);
        missing.push_back(row);
    }
    if (missing.empty()) return;
    multiply_panels(&d.word, words, width, fresh, joint, missing.size());
    for (const int64_t row : missing) {
        std::copy_n(fresh, joint, of_word + row * joint);
        uint8_t state = kEmpty;
        RowState* const of_token = states ? states + tokens[row] : nullptr;
        if (of_token && of_token->compare_exchange_strong(state, kClaimed)) {
            std::copy_n(fresh, joint, d.projections + tokens[row] * joint);
            of_token->store(kReady, std::memory_order_release);
        }
        fresh += joint;
    }
}

// What a step writes: all log-probabilities; or the best token that is not forbidden, and its own.
struct StepResult {
    float* log_probs;
    const int64_t* forbidden;
    int64_t forbidden_count;
    int64_t* best;
    double* best_log_probs;
};

// y = x W' + b of a block of columns. Exponentials are summed while it is in the cache.
void multiply_block(const PanelProduct& product, int64_t first, int64_t width, const float* x,
                    float* y, int64_t y_step, LogSum* sums, int64_t rows) {
    PanelProduct block = product;
    if (first) block.panels = static_cast<const float*>(product.panels) + first * (product.inputs + 1);
    block.outputs = width;
    multiply_panels(&block, x, product.inputs, y, y_step, rows);
    add_to_log_sums(y, y_step, sums, rows, width);
}

// With 8 bits, each block would round x again.
int64_t block_width(const PanelProduct& product) {
    return product.uses_int8 ? product.outputs : kBlock;
}

// log softmax(x W' + b)
void multiply_log_softmax(const PanelProduct& product, const float* x, float* y, int64_t rows) {
    const int64_t outputs = product.outputs, most = block_width(product);
    std::vector<LogSum> sums(rows, kEmptySum);
    for (int64_t first = 0; first < outputs; first += most) {
        multiply_block(product, first, std::min(most, outputs - first), x, y + first, outputs,
                       sums.data(), rows);
    }
    subtract_log_sums(y, sums.data(), rows, outputs);
}

// The best of log softmax(x W' + b), the first among equals; logits are not kept. NaN becomes the
// best log-probability.
void multiply_best(const PanelProduct& product, const float* x, const StepResult& result,
                   int64_t rows) {
    const int64_t outputs = product.outputs, most = block_width(product);
    std::vector<LogSum> sums(rows, kEmptySum);
    Scratch scratch(rows * most);
    float* logits = scratch.take(rows * most);
    std::vector<float> best(rows, kEmptySum.largest);
    std::fill_n(result.best, rows, 0);
    for (int64_t first = 0; first < outputs; first += most) {
        const int64_t width = std::min(most, outputs - first);
        multiply_block(product, first, width, x, logits, most, sums.data(), rows);
        for (int64_t i = 0; i < result.forbidden_count; ++i) {
            const int64_t column = result.forbidden[i] - first;
            if (column < 0 || column >= width) continue;
            for (int64_t row = 0; row < rows; ++row) logits[row * most + column] = kEmptySum.largest;
        }
        for (int64_t row = 0; row < rows; ++row) {
            if (!(sums[row].last > best[row])) continue;
            const float* block = logits + row * most;
            const int64_t column = argmax_of(block, width);
            if (block[column] > best[row]) {
                best[row] = block[column], result.best[row] = first + column;
            }
        }
    }
    for (int64_t row = 0; row < rows; ++row) {
        const float log_prob = (best[row] - sums[row].largest) - std::log(sums[row].total);
        result.best_log_probs[row] = log_prob;
    }
}

// Columns of the products are those of `DecoderWeights`. Values that are projected have had the
// product of the context, which is linear in them.
void step_rows(const DecoderStep& d, const float* exp_keys, const float* values,
               int64_t is_projected, const bool* valid, int64_t slots, const int64_t* origin, const int64_t* tokens, const float* s,
               float* next_s, const StepResult& result, int64_t rows) {
    const int64_t hidden = d.hidden, joint = d.word.outputs, width = d.word.inputs;
    const int64_t readout = joint - 3 * hidden, values_width = d.context.inputs;
    Scratch scratch(rows * (width + 3 * joint + d.state.outputs + values_width + 3 * hidden +
                            2 * readout));
    float *words = scratch.take(rows * width), *of_word = scratch.take(rows * joint);
    project_words(d, tokens, words, scratch.take(rows * joint), of_word, rows);
    float* of_state = scratch.take(rows * d.state.outputs);
    multiply_panels(&d.state, s, hidden, of_state, d.state.outputs, rows);
    float *context = scratch.take(rows * values_width), *of_context = scratch.take(rows * joint);
    if (is_projected) {
        attend_additive(of_state, d.state.outputs, exp_keys, d.energy, values, valid, origin,
                        of_context, rows, slots, d.units, joint);
    } else {
        attend_additive(of_state, d.state.outputs, exp_keys, d.energy, values, valid, origin,
                        context, rows, slots, d.units, values_width);
        multiply_panels(&d.context, context, values_width, of_context, joint, rows);
    }

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
    if (result.log_probs) {
        multiply_log_softmax(d.output, t, result.log_probs, rows);
    } else {
        multiply_best(d.output, t, result, rows);
    }
}

}  // namespace

// values W' + b of each slot, for `decoder_step` with `is_projected`
void project_values(const DecoderStep* decoder, const float* values, float* projected,
                    int64_t slots, int64_t threads) {
    const PanelProduct& product = decoder->context;
    run_shares(slots, kLeastRows, threads, [&](int64_t first, int64_t count) {
        multiply_panels(&product, values + first * product.inputs, product.inputs,
                        projected + first * product.outputs, product.outputs, count);
    });
}

// Reads a token in each row: log-probabilities of the next one, and the new state. Without memory for
// log-probabilities, the best token that is not forbidden, and its own. Returns 0 if a token is not in
// the vocabulary.
int64_t decoder_step(const DecoderStep* decoder, const float* exp_keys, const float* values,
                     int64_t is_projected, const bool* valid, int64_t slots, const int64_t* origin,
                     const int64_t* tokens, const float* s, float* next_s, float* log_probs,
                     const int64_t* forbidden, int64_t forbidden_count, int64_t* best,
                     double* best_log_probs, int64_t rows, int64_t threads) {
    const int64_t hidden = decoder->hidden, outputs = decoder->output.outputs;
    for (int64_t row = 0; row < rows; ++row) {
        if (tokens[row] < 0 || tokens[row] >= decoder->vocabulary) return 0;
    }
    run_shares(rows, kLeastRows, threads, [&](int64_t first, int64_t count) {
        const StepResult result{log_probs ? log_probs + first * outputs : nullptr, forbidden,
                                forbidden_count, best + first, best_log_probs + first};
        step_rows(*decoder, exp_keys, values, is_projected, valid, slots, origin + first, tokens + first,
                  s + first * hidden, next_s + first * hidden, result, count);
    });
    return 1;
}
