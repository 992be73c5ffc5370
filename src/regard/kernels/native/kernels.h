// The kernels of this folder, each explained where it is defined.

#pragma once

#include <cstdint>

// quantize.cpp
void quantize_rows(const float* x, uint8_t* numbers, float* scales, int64_t rows, int64_t width);

// transformer.cpp
void attend_step(const float* query, int64_t query_step, float* keys, float* values,
                 int64_t input_step, int64_t group_step, int64_t slot_step, const float* mask,
                 const int32_t* owners, int64_t owner_step, const float* new_keys,
                 const float* new_values, float* context, int64_t rows, int64_t rows_per_input,
                 int64_t heads, int64_t groups, int64_t slots, int64_t dim, float scale);
void finish_rows(float* y, const float* scales, const float* bias, int64_t is_relu,
                 const float* residual, const float* gain, const float* shift, float epsilon,
                 int64_t rows, int64_t width);

// recurrent.cpp
void attend_additive(const float* query, int64_t query_stride, const float* exp_keys,
                     const float* v, const float* values, const bool* valid, const int64_t* origin,
                     float* context, int64_t rows, int64_t slots, int64_t units, int64_t width);
void additive_energies(const float* query, const float* exp_keys, const float* v, float* energy,
                       int64_t rows, int64_t slots, int64_t units);
void additive_slopes(const float* query, const float* exp_keys, const float* grad, float* of_query,
                     float* of_keys, float* of_v, int64_t rows, int64_t slots, int64_t units);
void gru_gates(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* u,
               int64_t u_stride, const float* s, float* reset, float* keep, int64_t rows,
               int64_t width);
void gru_state(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* u,
               int64_t u_stride, const float* keep, const float* s, float* next_s, int64_t rows,
               int64_t width);
void gru_step(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* u,
              int64_t u_stride, const float* s, float* next_s, int64_t rows, int64_t width);
void gru_gates_gradient(const float* raw, const float* s, const float* of_reset,
                        const float* of_keep, float* of_raw, float* of_s, int64_t rows,
                        int64_t width);
void gru_state_gradient(const float* raw, const float* keep, const float* s, const float* grad,
                        float* of_raw, float* of_keep, float* of_s, int64_t count);
void sum_maxout(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* c,
                int64_t c_stride, float* y, int64_t rows, int64_t width, int64_t pieces);

// few_rows.cpp. Python writes these structures as arrays of 64-bit numbers (few_rows.py).
struct StepProduct {  // x W' + b; with `scales`, W and x have 8 bits
    const void* weight;
    const float* bias;
    const float* scales;  // of the rows of W
    const int32_t* sums;  // of the rows of W
    int64_t inputs, outputs;  // the outputs are a multiple of 4
};
struct StepNorm {
    const float *gain, *shift;
};
struct StepBlock {
    StepProduct query, key, value, out, cross_query, cross_out, widen, narrow;
    StepNorm self_norm, cross_norm, feed_norm;
};
struct StepStack {
    const StepBlock* first_block;
    int64_t blocks, heads, groups, head_dim, dim, hidden_dim, is_pre_norm, activation;
    StepNorm norm;  // after the last block
};
void has_dot_instructions(int64_t* answer);
void step_blocks(const StepStack* stack, float* x, float* slots, int64_t part_step,
                 int64_t row_step, int64_t group_step, int64_t slot_step, int64_t length,
                 const int32_t* owners, int64_t owner_step, float* const* source,
                 int64_t input_step, int64_t source_group_step, int64_t source_slot_step,
                 int64_t source_length, const float* mask, int64_t rows, int64_t rows_per_source,
                 float epsilon, float scale, int64_t threads);

// panels.cpp
constexpr int64_t kPanel = 48;  // rows of a weight side by side; kernels/panels.py has the same number
// Python writes this structure, and those that hold it, as arrays of 64-bit numbers.
struct PanelProduct {  // x W' + b
    const void* panels;  // kernels/panels.py
    int64_t inputs, outputs, uses_int8;
};
void multiply_panels(const PanelProduct* product, const float* x, int64_t x_step, float* y,
                     int64_t y_step, int64_t rows);

// sequence.cpp
struct GruSequence {  // kernels/gru.py
    PanelProduct input, state, fresh;
    int64_t hidden, resets_before;
};
void gru_sequence(const GruSequence* gru, const float* x, int64_t positions, const int64_t* counts,
                  const int64_t* firsts, int64_t steps, int64_t row_step, int64_t is_backward,
                  float* s, float* outputs, int64_t output_step, int64_t rows,
                  int64_t threads);

// decoder.cpp
struct DecoderStep {  // kernels/decoder.py
    PanelProduct word, state, context, fresh, readout, output;
    const float *words, *energy;  // the table of words, and v of the attention
    float* projections;          // products of words that were read before; null if they are not kept
    void* projection_states;     // a byte for each word: whether it has a row
    int64_t vocabulary, hidden, units, pieces, resets_before, reads_current;
};
void project_values(const DecoderStep* decoder, const float* values, float* projected,
                    int64_t slots, int64_t threads);
int64_t decoder_step(const DecoderStep* decoder, const float* exp_keys, const float* values,
                     int64_t is_projected, const bool* valid, int64_t slots, const int64_t* origin,
                     const int64_t* tokens, const float* s, float* next_s, float* log_probs,
                     const int64_t* forbidden, int64_t forbidden_count, int64_t* best,
                     double* best_log_probs, int64_t rows, int64_t threads);

// search.cpp
struct LogSum {  // log sum exp x = largest + log(total), of the numbers so far
    float largest, total, last;  // the last one is the largest of those that were added last
};
constexpr LogSum kEmptySum = {-__builtin_inff(), 0.0f, -__builtin_inff()};
void add_to_log_sums(const float* x, int64_t x_step, LogSum* sums, int64_t rows, int64_t width);
void subtract_log_sums(float* x, const LogSum* sums, int64_t rows, int64_t width);
void log_softmax_rows(float* x, int64_t rows, int64_t width);
int64_t argmax_of(const float* x, int64_t width);
void argmax_rows(const float* x, int64_t* columns, int64_t rows, int64_t width, int64_t threads);
void top_sums(const float* log_probs, const double* scores, double* values, int64_t* indices,
              int64_t inputs, int64_t beams, int64_t width, int64_t count, int64_t threads);
