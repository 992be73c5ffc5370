// Products with few rows, and a whole step of a stack of transformer blocks in one call.
//
// With few rows, the time of a product is that of reading its weights. They are read once, in the
// order in which they are stored.

#include <algorithm>
#include <vector>

#include "kernels.h"
#include "threads.h"
#include "vector_math.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_DOT_INSTRUCTIONS
#define WITH_DOT_INSTRUCTIONS __attribute__((target("avx512f,avx512bw,avx512vnni")))
#endif

namespace {

constexpr int64_t kOutputs = 4;  // rows of a weight that are read side by side
constexpr int64_t kRows = 4;     // rows of x that are multiplied with them at once
constexpr int64_t kBytesAhead = 1024;  // of a weight, which the processor fetches in advance
constexpr int64_t kLeastBytes = 1 << 16;  // of a weight: with fewer, threads wait for each other

// Sixteen numbers, which the compiler puts into as many registers as the processor needs.
typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t kLanes = 16;

typedef float EightFloats __attribute__((vector_size(32)));
typedef float FourFloats __attribute__((vector_size(16), aligned(4), may_alias));

INLINE FourFloats fold(const Floats& x) {
    const EightFloats half = __builtin_shufflevector(x, x, 0, 1, 2, 3, 4, 5, 6, 7) +
                             __builtin_shufflevector(x, x, 8, 9, 10, 11, 12, 13, 14, 15);
    return __builtin_shufflevector(half, half, 0, 1, 2, 3) +
           __builtin_shufflevector(half, half, 4, 5, 6, 7);
}

// The sum of each of four vectors.
INLINE FourFloats sums_of(const Floats (&x)[4]) {
    const FourFloats a = fold(x[0]), b = fold(x[1]), c = fold(x[2]), d = fold(x[3]);
    const FourFloats ab = __builtin_shufflevector(a, b, 0, 1, 4, 5) +
                          __builtin_shufflevector(a, b, 2, 3, 6, 7);
    const FourFloats cd = __builtin_shufflevector(c, d, 0, 1, 4, 5) +
                          __builtin_shufflevector(c, d, 2, 3, 6, 7);
    return __builtin_shufflevector(ab, cd, 0, 2, 4, 6) + __builtin_shufflevector(ab, cd, 1, 3, 5, 7);
}

// y = x W' + b for `rows` rows and kOutputs rows of W
template <int64_t rows>
INLINE void multiply_floats(const float* x, const StepProduct& product, int64_t first, float* y,
                            int64_t y_step) {
    const int64_t width = product.inputs;
    const float* weight = static_cast<const float*>(product.weight) + first * width;
    Floats sums[rows][kOutputs] = {};
    int64_t i = 0;
    for (; i + kLanes <= width; i += kLanes) {
        Floats w[kOutputs];
        for (int64_t o = 0; o < kOutputs; ++o) {
            w[o] = *reinterpret_cast<const Floats*>(weight + o * width + i);
            __builtin_prefetch(weight + o * width + i + kBytesAhead / sizeof(float));
        }
        for (int64_t r = 0; r < rows; ++r) {
            const Floats numbers = *reinterpret_cast<const Floats*>(x + r * width + i);
            for (int64_t o = 0; o < kOutputs; ++o) sums[r][o] += numbers * w[o];
        }
    }
    for (int64_t r = 0; r < rows; ++r) {
        FourFloats results = sums_of(sums[r]);
        for (int64_t o = 0; o < kOutputs; ++o) {
            for (int64_t j = i; j < width; ++j) results[o] += x[r * width + j] * weight[o * width + j];
        }
        if (product.bias) results += *reinterpret_cast<const FourFloats*>(product.bias + first);
        *reinterpret_cast<FourFloats*>(y + r * y_step + first) = results;
    }
}

// The same for the outputs from `first` to `end`.
VECTORIZED
void multiply_floats(const float* x, const StepProduct& product, float* y, int64_t y_step,
                     int64_t rows, int64_t first, int64_t end) {
    for (; first < end; first += kOutputs) {
        for (int64_t row = 0; row < rows; row += kRows) {
            const float* numbers = x + row * product.inputs;
            float* results = y + row * y_step;
            switch (std::min(kRows, rows - row)) {
                case 1: multiply_floats<1>(numbers, product, first, results, y_step); break;
                case 2: multiply_floats<2>(numbers, product, first, results, y_step); break;
                case 3: multiply_floats<3>(numbers, product, first, results, y_step); break;
                default: multiply_floats<4>(numbers, product, first, results, y_step);
            }
        }
    }
}

#ifdef HAS_DOT_INSTRUCTIONS

constexpr int64_t kBytes = 64;  // of a register

// y = s_x (Q_x Q_w') s_w + b for `rows` rows and kOutputs rows of W; see int8.py. The numbers of x are
// 128 too large.
template <int64_t rows>
WITH_DOT_INSTRUCTIONS inline void multiply_bytes(const uint8_t* x, const float* x_scales,
                                                 const StepProduct& product, int64_t first,
                                                 float* y, int64_t y_step) {
    const int64_t width = product.inputs;
    const int8_t* weight = static_cast<const int8_t*>(product.weight) + first * width;
    __m512i totals[rows][kOutputs];
    for (auto& row : totals) {
        for (auto& total : row) total = _mm512_setzero_si512();
    }
    for (int64_t i = 0; i < width; i += kBytes) {
        const int64_t left = width - i;
        const __mmask64 used = left < kBytes ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
        __m512i w[kOutputs];
        for (int64_t o = 0; o < kOutputs; ++o) {
            w[o] = _mm512_maskz_loadu_epi8(used, weight + o * width + i);
            __builtin_prefetch(weight + o * width + i + kBytesAhead);
        }
        for (int64_t r = 0; r < rows; ++r) {
            const __m512i numbers = _mm512_maskz_loadu_epi8(used, x + r * width + i);
            for (int64_t o = 0; o < kOutputs; ++o) {
                totals[r][o] = _mm512_dpbusd_epi32(totals[r][o], numbers, w[o]);
            }
        }
    }
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t o = 0; o < kOutputs; ++o) {
            const int64_t column = first + o;
            const int32_t sum = _mm512_reduce_add_epi32(totals[r][o]) - 128 * product.sums[column];
            const float value = sum * (product.scales[column] / 127.0f) * x_scales[r];
            y[r * y_step + column] = product.bias ? value + product.bias[column] : value;
        }
    }
}

WITH_DOT_INSTRUCTIONS
void multiply_bytes(const uint8_t* x, const float* x_scales, const StepProduct& product, float* y,
                    int64_t y_step, int64_t rows, int64_t first, int64_t end) {
    for (; first < end; first += kOutputs) {
        for (int64_t row = 0; row < rows; row += kRows) {
            const uint8_t* numbers = x + row * product.inputs;
            const float* scales = x_scales + row;
            float* results = y + row * y_step;
            switch (std::min(kRows, rows - row)) {
                case 1: multiply_bytes<1>(numbers, scales, product, first, results, y_step); break;
                case 2: multiply_bytes<2>(numbers, scales, product, first, results, y_step); break;
                case 3: multiply_bytes<3>(numbers, scales, product, first, results, y_step); break;
                default: multiply_bytes<4>(numbers, scales, product, first, results, y_step);
            }
        }
    }
}

#endif

// The rows of a product; they are rounded to 8 bits at most once. Threads share its outputs.
class Input {
   public:
    Input(const float* x, int64_t rows, int64_t width, int64_t threads)
        : x_(x), rows_(rows), width_(width), threads_(threads) {}

    void multiply(const StepProduct& product, float* y, int64_t y_step) {
        if (!product.scales) {
            share(product, sizeof(float), [&](int64_t first, int64_t end) {
                multiply_floats(x_, product, y, y_step, rows_, first, end);
            });
            return;
        }
#ifdef HAS_DOT_INSTRUCTIONS
        if (numbers_.empty()) {
            numbers_.resize(rows_ * width_);
            scales_.resize(rows_);
            quantize_rows(x_, numbers_.data(), scales_.data(), rows_, width_);
        }
        share(product, sizeof(int8_t), [&](int64_t first, int64_t end) {
            multiply_bytes(numbers_.data(), scales_.data(), product, y, y_step, rows_, first, end);
        });
#endif
    }

   private:
    // Calls part(first, end) for shares of the outputs.
    template <typename Part>
    void share(const StepProduct& product, int64_t number_bytes, const Part& part) {
        const int64_t bytes = kOutputs * product.inputs * number_bytes;
        run_shares(product.outputs / kOutputs, std::max<int64_t>(1, kLeastBytes / bytes), threads_,
                   [&](int64_t first, int64_t count) {
                       part(first * kOutputs, (first + count) * kOutputs);
                   });
    }

    const float* x_;
    int64_t rows_, width_, threads_;
    std::vector<uint8_t> numbers_;
    std::vector<float> scales_;
};

enum Activation : int64_t { kRelu, kSwish, kTanhGelu };  // their order in few_rows.py

VECTORIZED
void activate(float* x, int64_t count, int64_t activation) {
    if (activation == kRelu) {
        for (int64_t i = 0; i < count; ++i) x[i] = x[i] < 0.0f ? 0.0f : x[i];
    } else if (activation == kSwish) {
        for (int64_t i = 0; i < count; ++i) x[i] *= sigmoid_of(x[i]);
    } else {  // x sigmoid(2 sqrt(2 / pi) (x + 0.044715 x^3))
        for (int64_t i = 0; i < count; ++i) {
            x[i] *= sigmoid_of(1.5957691216f * (x[i] + 0.044715f * x[i] * x[i] * x[i]));
        }
    }
}

}  // namespace

void has_dot_instructions(int64_t* answer) {
#ifdef HAS_DOT_INSTRUCTIONS
    __builtin_cpu_init();
    *answer = __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw");
#else
    *answer = 0;
#endif
}

// Reads one position in each row of x, which is overwritten by its states. The slots are
// [2 blocks, rows, groups, slots, head_dim], keys and values of each block one after the other; those
// of the source, of which several adjacent rows may share one, are at 2 blocks addresses.
void step_blocks(const StepStack* stack, float* x, float* slots, int64_t part_step,
                 int64_t row_step, int64_t group_step, int64_t slot_step, int64_t length,
                 const int32_t* owners, int64_t owner_step, float* const* source,
                 int64_t input_step, int64_t source_group_step, int64_t source_slot_step,
                 int64_t source_length, const float* mask, int64_t rows, int64_t rows_per_source,
                 float epsilon, float scale, int64_t threads) {
    const int64_t dim = stack->dim, heads = stack->heads, groups = stack->groups;
    const int64_t joint = (heads + 2 * groups) * stack->head_dim, inner = heads * stack->head_dim;
    std::vector<float> buffer(rows * (joint + inner + stack->hidden_dim + 2 * dim));
    float *projected = buffer.data(), *context = projected + rows * joint,
          *hidden = context + rows * inner, *change = hidden + rows * stack->hidden_dim,
          *normed = change + rows * dim;
    const auto normalize = [&](const StepNorm& norm, const float* from, float* to) {
        std::memcpy(to, from, rows * dim * sizeof(float));
        finish_rows(to, nullptr, nullptr, 0, nullptr, norm.gain, norm.shift, epsilon, rows, dim);
    };
    const auto input = [&](const StepNorm& norm) -> const float* {
        if (!stack->is_pre_norm) return x;
        normalize(norm, x, normed);
        return normed;
    };
    const auto add = [&](const StepNorm& norm) {  // x = LN(x + change), or x + change
        const bool is_pre_norm = stack->is_pre_norm;
        finish_rows(x, nullptr, nullptr, 0, change, is_pre_norm ? nullptr : norm.gain,
                    is_pre_norm ? nullptr : norm.shift, epsilon, rows, dim);
    };
    for (int64_t number = 0; number < stack->blocks; ++number) {
        const StepBlock& block = stack->first_block[number];
        float *keys = slots + 2 * number * part_step, *values = keys + part_step;
        Input states(input(block.self_norm), rows, dim, threads);
        states.multiply(block.query, projected, joint);
        states.multiply(block.key, projected + inner, joint);
        states.multiply(block.value, projected + inner + groups * stack->head_dim, joint);
        attend_step(projected, joint, keys, values, row_step, group_step, slot_step, nullptr,
                    owners, owner_step, projected + inner,
                    projected + inner + groups * stack->head_dim, context, rows, 1, heads,
                    groups, length, stack->head_dim, scale);
        Input(context, rows, inner, threads).multiply(block.out, change, dim);
        add(block.self_norm);
        if (source) {
            Input(input(block.cross_norm), rows, dim, threads)
                .multiply(block.cross_query, projected, inner);
            attend_step(projected, inner, source[2 * number], source[2 * number + 1], input_step,
                        source_group_step, source_slot_step, mask, nullptr, 0, nullptr, nullptr,
                        context, rows, rows_per_source, heads, groups, source_length,
                        stack->head_dim, scale);
            Input(context, rows, inner, threads).multiply(block.cross_out, change, dim);
            add(block.cross_norm);
        }
        Input(input(block.feed_norm), rows, dim, threads)
            .multiply(block.widen, hidden, stack->hidden_dim);
        activate(hidden, rows * stack->hidden_dim, stack->activation);
        Input(hidden, rows, stack->hidden_dim, threads).multiply(block.narrow, change, dim);
        add(block.feed_norm);
    }
    if (stack->norm.gain) {
        finish_rows(x, nullptr, nullptr, 0, nullptr, stack->norm.gain, stack->norm.shift, epsilon,
                    rows, dim);
    }
}
