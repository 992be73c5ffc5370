// Rounding of activations to 8 bits.

#include <cmath>

#include "kernels.h"
#include "vector_math.h"

// numbers = round(127 x / s) + 128, with s = max |x| of each row, at least 1e-30
VECTORIZED
void quantize_rows(const float* x, uint8_t* numbers, float* scales, int64_t rows, int64_t width) {
    for (int64_t row = 0; row < rows; ++row, x += width, numbers += width) {
        float largest = 1e-30f;
#pragma omp simd reduction(max : largest)
        for (int64_t i = 0; i < width; ++i) {
            const float size = std::fabs(x[i]);
            largest = size > largest ? size : largest;
        }
        scales[row] = largest;
        const float factor = 127.0f / largest;
        for (int64_t i = 0; i < width; ++i) {  // half to even, as torch rounds
            numbers[i] = static_cast<uint8_t>(static_cast<int32_t>(std::nearbyint(x[i] * factor)) + 128);
        }
    }
}
