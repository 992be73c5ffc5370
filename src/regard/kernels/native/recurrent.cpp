// Parts of a step of a recurrent decoder. Matrices have a stride, so that they may be columns of a
// wider one; a stride of 0 repeats one row.

#include <vector>

#include "kernels.h"
#include "vector_math.h"

constexpr float kMaxQuery = 40.0f;  // beyond it, every tanh is saturated (attention/step_energy.py)

// w_j = exp e_j / sum exp e over the slots that are valid; others, or all of a row without any: 0
VECTORIZED
static void softmax_of_valid(float* energy, const bool* valid, int64_t slots) {
    float largest = -__builtin_inff(), total = 0.0f;
    for (int64_t slot = 0; slot < slots; ++slot) {
        if (valid && !valid[slot]) energy[slot] = -__builtin_inff();
        largest = energy[slot] > largest ? energy[slot] : largest;
    }
#pragma omp simd reduction(+ : total)
    for (int64_t slot = 0; slot < slots; ++slot) {
        const bool counts = !valid || valid[slot];
        energy[slot] = counts ? exp_of(energy[slot] - largest) : 0.0f;
        total += energy[slot];
    }
    const float factor = total == 0.0f ? 0.0f : 1.0f / total;
    for (int64_t slot = 0; slot < slots; ++slot) energy[slot] *= factor;
}

// context = sum_j w_j value_j, four slots at a time
VECTORIZED
static void sum_values(const float* weights, const float* values, float* context, int64_t slots,
                       int64_t width) {
    for (int64_t i = 0; i < width; ++i) context[i] = 0.0f;
    int64_t slot = 0;
    for (; slot + 4 <= slots; slot += 4, values += 4 * width) {
        const float a = weights[slot], b = weights[slot + 1], c = weights[slot + 2],
                    d = weights[slot + 3];
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
            context[i] += (a * values[i] + b * values[width + i]) +
                          (c * values[2 * width + i] + d * values[3 * width + i]);
        }
    }
    for (; slot < slots; ++slot, values += width) {
        const float a = weights[slot];
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) context[i] += a * values[i];
    }
}

// e_j = sum(v) - 2 v . 1 / (1 + exp(2 q) exp(2 k_j)) = v . tanh(q + k_j), for one row
VECTORIZED
static void additive_energy(const float* query, const float* exp_keys, const float* v,
                            float* exp_query, float* energy, int64_t slots, int64_t units) {
    float total = 0.0f;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < units; ++i) {
        float limited = query[i] > kMaxQuery ? kMaxQuery : query[i];
        limited = limited < -kMaxQuery ? -kMaxQuery : limited;
        exp_query[i] = exp_of(2.0f * limited);
        total += v[i];
    }
    for (int64_t slot = 0; slot < slots; ++slot, exp_keys += units) {
        float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < units; ++i) sum += v[i] / (1.0f + exp_query[i] * exp_keys[i]);
        energy[slot] = total - 2.0f * sum;
    }
}

// The energies of all rows; row i has the keys i.
void additive_energies(const float* query, const float* exp_keys, const float* v, float* energy,
                       int64_t rows, int64_t slots, int64_t units) {
    std::vector<float> exp_query(units);
    for (int64_t row = 0; row < rows; ++row) {
        additive_energy(query, exp_keys, v, exp_query.data(), energy, slots, units);
        query += units, exp_keys += slots * units, energy += slots;
    }
}

// With r = 1 / (1 + exp(2 q) exp(2 k)), adds g r (1 - r) of each slot to `of_keys`, its sum over the
// slots to `of_query`, and the sum of g r over rows and slots to `of_v`.
VECTORIZED
void additive_slopes(const float* query, const float* exp_keys, const float* grad, float* of_query,
                     float* of_keys, float* of_v, int64_t rows, int64_t slots, int64_t units) {
    std::vector<float> buffer(units);
    float* exp_query = buffer.data();
    for (int64_t row = 0; row < rows; ++row, query += units, of_query += units) {
#pragma omp simd
        for (int64_t i = 0; i < units; ++i) {
            float limited = query[i] > kMaxQuery ? kMaxQuery : query[i];
            limited = limited < -kMaxQuery ? -kMaxQuery : limited;
            exp_query[i] = exp_of(2.0f * limited);
        }
        for (int64_t slot = 0; slot < slots; ++slot, exp_keys += units, of_keys += units, ++grad) {
            const float g = *grad;
#pragma omp simd
            for (int64_t i = 0; i < units; ++i) {
                const float r = 1.0f / (1.0f + exp_query[i] * exp_keys[i]);
                const float slope = g * r * (1.0f - r);
                of_v[i] += g * r;
                of_query[i] += slope;
                of_keys[i] += slope;
            }
        }
    }
}

// context = softmax(v . tanh(q + k)) values; row i reads the memory of input origin[i]
void attend_additive(const float* query, int64_t query_stride, const float* exp_keys,
                     const float* v, const float* values, const bool* valid, const int64_t* origin,
                     float* context, int64_t rows, int64_t slots, int64_t units, int64_t width) {
    std::vector<float> exp_query(units), weights(slots);
    for (int64_t row = 0; row < rows; ++row, query += query_stride, context += width) {
        const int64_t first = origin[row] * slots;
        additive_energy(query, exp_keys + first * units, v, exp_query.data(), weights.data(),
                        slots, units);
        softmax_of_valid(weights.data(), valid ? valid + first : nullptr, slots);
        sum_values(weights.data(), values + first * width, context, slots, width);
    }
}

// r, z = sigma(a + b + u), each of `width` columns: reset = r s, keep = z
VECTORIZED
void gru_gates(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* u,
               int64_t u_stride, const float* s, float* reset, float* keep, int64_t rows,
               int64_t width) {
    for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
            reset[i] = sigmoid_of(a[i] + b[i] + u[i]) * s[i];
            keep[i] = sigmoid_of(a[width + i] + b[width + i] + u[width + i]);
        }
        a += a_stride, b += b_stride, u += u_stride, s += width, reset += width, keep += width;
    }
}

// s' = z s + (1 - z) tanh(a + b + u)
VECTORIZED
void gru_state(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* u,
               int64_t u_stride, const float* keep, const float* s, float* next_s, int64_t rows,
               int64_t width) {
    for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
            const float candidate = tanh_of(a[i] + b[i] + u[i]);
            next_s[i] = candidate + keep[i] * (s[i] - candidate);
        }
        a += a_stride, b += b_stride, u += u_stride, keep += width, s += width, next_s += width;
    }
}

// r, z = sigma(a + b + u), s' = z s + (1 - z) tanh(a + b + r u), each of `width` columns
VECTORIZED
void gru_step(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* u,
              int64_t u_stride, const float* s, float* next_s, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
            const int64_t z = width + i, n = 2 * width + i;
            const float reset = sigmoid_of(a[i] + b[i] + u[i]);
            const float keep = sigmoid_of(a[z] + b[z] + u[z]);
            const float candidate = tanh_of(a[n] + b[n] + reset * u[n]);
            next_s[i] = candidate + keep * (s[i] - candidate);
        }
        a += a_stride, b += b_stride, u += u_stride, s += width, next_s += width;
    }
}

// The gradients of `gru_gates` for its sum `raw` and for s, from those of reset and keep.
VECTORIZED
void gru_gates_gradient(const float* raw, const float* s, const float* of_reset,
                        const float* of_keep, float* of_raw, float* of_s, int64_t rows,
                        int64_t width) {
    for (int64_t row = 0; row < rows; ++row) {
#pragma omp simd
        for (int64_t i = 0; i < width; ++i) {
            const float r = sigmoid_of(raw[i]), z = sigmoid_of(raw[width + i]);
            of_raw[i] = of_reset[i] * s[i] * r * (1.0f - r);
            of_raw[width + i] = of_keep[i] * z * (1.0f - z);
            of_s[i] = of_reset[i] * r;
        }
        raw += 2 * width, of_raw += 2 * width;
        s += width, of_reset += width, of_keep += width, of_s += width;
    }
}

// The gradients of `gru_state` for its sum `raw`, for keep and for s, from that of the new state.
VECTORIZED
void gru_state_gradient(const float* raw, const float* keep, const float* s, const float* grad,
                        float* of_raw, float* of_keep, float* of_s, int64_t count) {
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) {
        const float candidate = tanh_of(raw[i]);
        of_raw[i] = grad[i] * (1.0f - keep[i]) * (1.0f - candidate * candidate);
        of_keep[i] = grad[i] * (s[i] - candidate);
        of_s[i] = grad[i] * keep[i];
    }
}

// y_j = max over the pieces p of (a + b + c)_{p width + j}
VECTORIZED
void sum_maxout(const float* a, int64_t a_stride, const float* b, int64_t b_stride, const float* c,
                int64_t c_stride, float* y, int64_t rows, int64_t width, int64_t pieces) {
    for (int64_t row = 0; row < rows; ++row) {
        for (int64_t piece = 0; piece < pieces; ++piece) {
            const int64_t first = piece * width;
#pragma omp simd
            for (int64_t i = 0; i < width; ++i) {
                const float sum = a[first + i] + b[first + i] + c[first + i];
                y[i] = piece && !(sum > y[i] || sum != sum) ? y[i] : sum;  // NaN stays NaN
            }
        }
        a += a_stride, b += b_stride, c += c_stride, y += width;
    }
}
