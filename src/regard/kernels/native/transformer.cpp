// A step of a transformer block: attention of one position, and what follows a product.

#include <cmath>
#include <vector>

#include "kernels.h"
#include "vector_math.h"

namespace {

constexpr int64_t kPiece = 64;  // numbers of a context that stay in registers

// sum_i x_i y_i
INLINE float dot(const float* x, const float* y, int64_t width) {
    float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += x[i] * y[i];
    return sum;
}

// context = sum_s w_s v_s, for `width` numbers
INLINE void weigh(const float* weights, const float* values, const int64_t* starts, int64_t slots,
                  float* context, int64_t width) {
    float sums[kPiece] = {};
    if (width == kPiece) {
        for (int64_t s = 0; s < slots; ++s) {
            const float* slot = values + starts[s];
            for (int64_t i = 0; i < kPiece; ++i) sums[i] += weights[s] * slot[i];
        }
    } else {
        for (int64_t s = 0; s < slots; ++s) {
            const float* slot = values + starts[s];
            for (int64_t i = 0; i < width; ++i) sums[i] += weights[s] * slot[i];
        }
    }
    for (int64_t i = 0; i < width; ++i) context[i] = sums[i];
}

}  // namespace

// context_r = sum_s softmax_s(scale q_r . k_s + mask_s) v_s, in each head
//
// Adjacent rows share the slots of one input. Keys and values are [inputs groups slots dim] with
// these steps, dim contiguous; `mask` is [inputs slots], or none. With `owners`, slot s of row r is
// that of the input `owners[r, s]`. With `new_keys`, the last slot of each row is first written: its
// keys and values are as far apart as the queries.
VECTORIZED
void attend_step(const float* query, int64_t query_step, float* keys, float* values,
                 int64_t input_step, int64_t group_step, int64_t slot_step, const float* mask,
                 const int32_t* owners, int64_t owner_step, const float* new_keys,
                 const float* new_values, float* context, int64_t rows, int64_t rows_per_input,
                 int64_t heads, int64_t groups, int64_t slots, int64_t dim, float scale) {
    static thread_local std::vector<float> weight_buffer;
    static thread_local std::vector<int64_t> start_buffer;
    if (static_cast<int64_t>(weight_buffer.size()) < slots) {
        weight_buffer.resize(2 * slots);
        start_buffer.resize(2 * slots);
    }
    float* weights = weight_buffer.data();
    int64_t* starts = start_buffer.data();  // of the slots of this row, for its first group
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t input = row / rows_per_input;
        for (int64_t s = 0; s < slots; ++s) {
            const int64_t owner = owners ? owners[row * owner_step + s] : input;
            starts[s] = owner * input_step + s * slot_step;
        }
        if (new_keys) {
            for (int64_t group = 0; group < groups; ++group) {
                const int64_t from = row * query_step + group * dim;
                const int64_t to =
                    input * input_step + group * group_step + (slots - 1) * slot_step;
                std::memcpy(keys + to, new_keys + from, dim * sizeof(float));
                std::memcpy(values + to, new_values + from, dim * sizeof(float));
            }
        }
        for (int64_t head = 0; head < heads; ++head) {
            const float* q = query + row * query_step + head * dim;
            const int64_t group = head / (heads / groups);
            const int64_t start = group * group_step;
            float largest = -INFINITY;
            for (int64_t s = 0; s < slots; ++s) {
                float energy = scale * dot(q, keys + start + starts[s], dim);
                if (mask) energy += mask[input * slots + s];
                weights[s] = energy;
                largest = energy > largest ? energy : largest;
            }
            // where the mask allows no slot, all weights are 0; NaN stays NaN
            const float base = largest == -INFINITY ? 0.0f : largest;
            float sum = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t s = 0; s < slots; ++s) {
                weights[s] = exp_of(weights[s] - base);
                sum += weights[s];
            }
            const float factor = sum == 0.0f ? 0.0f : 1.0f / sum;
            for (int64_t s = 0; s < slots; ++s) weights[s] *= factor;
            float* out = context + (row * heads + head) * dim;
            for (int64_t i = 0; i < dim; i += kPiece) {
                const int64_t width = dim - i < kPiece ? dim - i : kPiece;
                weigh(weights, values + start + i, starts, slots, out + i, width);
            }
        }
    }
}

// y = scale_r y + bias, then relu(y), then y + residual, then LN(y); what is none is left out
VECTORIZED
void finish_rows(float* y, const float* scales, const float* bias, int64_t is_relu,
                 const float* residual, const float* gain, const float* shift, float epsilon,
                 int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; ++row, y += width) {
        if (scales || bias || is_relu) {
            const float scale = scales ? scales[row] : 1.0f;
            const float least = is_relu ? 0.0f : -INFINITY;
            if (bias) {
                for (int64_t i = 0; i < width; ++i) {
                    const float value = y[i] * scale + bias[i];
                    y[i] = value < least ? least : value;
                }
            } else {
                for (int64_t i = 0; i < width; ++i) {
                    const float value = y[i] * scale;
                    y[i] = value < least ? least : value;
                }
            }
        }
        if (residual) {
            const float* other = residual + row * width;
            for (int64_t i = 0; i < width; ++i) y[i] += other[i];
        }
        if (gain) {
            float sum = 0.0f, squares = 0.0f;
#pragma omp simd reduction(+ : sum)
            for (int64_t i = 0; i < width; ++i) sum += y[i];
            const float mean = sum / width;
#pragma omp simd reduction(+ : squares)
            for (int64_t i = 0; i < width; ++i) squares += (y[i] - mean) * (y[i] - mean);
            const float factor = 1.0f / std::sqrt(squares / width + epsilon);
            for (int64_t i = 0; i < width; ++i) {
                y[i] = (y[i] - mean) * factor * gain[i] + shift[i];
            }
        }
    }
}
