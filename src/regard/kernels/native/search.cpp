// Log-probabilities of the next token, and the best of them.

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels.h"
#include "threads.h"
#include "vector_math.h"

constexpr int64_t kBlock = 64;  // numbers that are looked at one by one only if the largest counts
constexpr double kNone = -std::numeric_limits<double>::infinity();

constexpr int64_t kLeastNumbers = 50000;  // of a thread: a few microseconds

static int64_t least_rows(int64_t width) { return 1 + kLeastNumbers / width; }

// Adds `width` numbers of each row to the sums of its exponentials.
VECTORIZED
void add_to_log_sums(const float* x, int64_t x_step, LogSum* sums, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; ++row, x += x_step) {
        const float before = sums[row].largest;
        float last = -__builtin_inff(), total = 0.0f;
#pragma omp simd reduction(max : last)
        for (int64_t i = 0; i < width; ++i) last = x[i] > last ? x[i] : last;
        const float largest = last > before ? last : before;
        const float shift = largest == -__builtin_inff() ? 0.0f : largest;  // all are -inf, or NaN
#pragma omp simd reduction(+ : total)
        for (int64_t i = 0; i < width; ++i) total += exp_of_difference(x[i] - shift);
        const float factor = before == largest ? 1.0f : exp_of(before - largest);
        sums[row] = {largest, sums[row].total * factor + total, last};
    }
}

// x - log sum exp x, in place
VECTORIZED
void subtract_log_sums(float* x, const LogSum* sums, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; ++row, x += width) {
        const float largest = sums[row].largest, log_total = std::log(sums[row].total);
        for (int64_t i = 0; i < width; ++i) x[i] = (x[i] - largest) - log_total;
    }
}

void log_softmax_rows(float* x, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; ++row, x += width) {
        LogSum sum = kEmptySum;
        add_to_log_sums(x, width, &sum, 1, width);
        subtract_log_sums(x, &sum, 1, width);
    }
}

// The largest of some numbers; NaN if one of them is.
INLINE float largest_of(const float* x, int64_t count) {
    float largest = -__builtin_inff();
    int32_t has_nan = 0;
#pragma omp simd reduction(max : largest) reduction(| : has_nan)
    for (int64_t i = 0; i < count; ++i) {
        largest = x[i] > largest ? x[i] : largest;
        has_nan |= x[i] != x[i];
    }
    return has_nan ? __builtin_nanf("") : largest;
}

// The column of the largest number, the first among equals; NaN is larger than any.
VECTORIZED
int64_t argmax_of(const float* x, int64_t width) {
    int64_t column = 0;
    float best = -std::numeric_limits<float>::infinity();
    for (int64_t first = 0; first < width; first += kBlock) {
        const float largest = largest_of(x + first, std::min(kBlock, width - first));
        if (largest > best || largest != largest) {
            best = largest, column = first;
            if (largest != largest) break;
        }
    }
    while (best != best ? x[column] == x[column] : x[column] != best) ++column;
    return column;
}

VECTORIZED
static void top_sums_of(const float* log_probs, const double* scores, double* values, int64_t* indices,
              int64_t inputs, int64_t beams, int64_t width, int64_t count) {
    for (int64_t input = 0; input < inputs; ++input, values += count, indices += count) {
        bool has_nan = false;
        for (int64_t i = 0; i < count; ++i) values[i] = kNone, indices[i] = 0;
        for (int64_t beam = 0; beam < beams; ++beam, log_probs += width) {
            const double score = scores[input * beams + beam];
            has_nan |= score != score;
            for (int64_t first = 0; first < width; first += kBlock) {
                const int64_t end = std::min(first + kBlock, width);
                const float largest = largest_of(log_probs + first, end - first);
                has_nan |= largest != largest;
                if (!(score + largest > values[count - 1])) continue;
                for (int64_t column = first; column < end; ++column) {
                    const double sum = score + log_probs[column];
                    if (!(sum > values[count - 1])) continue;
                    int64_t place = count - 1;
                    for (; place > 0 && values[place - 1] < sum; --place) {
                        values[place] = values[place - 1], indices[place] = indices[place - 1];
                    }
                    values[place] = sum, indices[place] = beam * width + column;
                }
            }
        }
        if (has_nan) values[0] = std::numeric_limits<double>::quiet_NaN();
    }
}

void argmax_rows(const float* x, int64_t* columns, int64_t rows, int64_t width, int64_t threads) {
    run_shares(rows, least_rows(width), threads, [&](int64_t first, int64_t number) {
        for (int64_t row = first; row < first + number; ++row) {
            columns[row] = argmax_of(x + row * width, width);
        }
    });
}

// The `count` largest sums of a score and a log-probability of each input, the largest first; among
// equals, the lowest index (beam * width + column). Places for which nothing is left, because all
// other sums are -inf, have the index 0. The first value of an input with NaN is NaN.
void top_sums(const float* log_probs, const double* scores, double* values, int64_t* indices,
              int64_t inputs, int64_t beams, int64_t width, int64_t count, int64_t threads) {
    run_shares(inputs, least_rows(beams * width), threads, [&](int64_t first, int64_t number) {
        top_sums_of(log_probs + first * beams * width, scores + first * beams,
                    values + first * count, indices + first * count, number, beams, width, count);
    });
}
