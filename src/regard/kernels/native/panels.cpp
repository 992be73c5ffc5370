// x W' + b for some dozens of rows, with weights in the order in which they are read.
//
// A panel has kPanel rows of W side by side (kernels/panels.py). All rows of x are multiplied with a
// panel before the next one, so that the weights come from memory once. A tile of the result stays
// in registers.

#include <algorithm>
#include <vector>

#include "kernels.h"
#include "vector_math.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define HAS_DOT_INSTRUCTIONS
#define WITH_DOT_INSTRUCTIONS __attribute__((target("avx512f,avx512bw,avx512vnni")))
#endif

namespace {

constexpr int64_t kAhead = 64 * kPanel;  // numbers that the processor fetches in advance

// Sixteen numbers, which the compiler puts into as many registers as the processor needs.
typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
constexpr int64_t kLanes = 16;

// Tiles of the result: with AVX-512, 8 rows of a whole panel have 24 of 32 registers. Elsewhere, 16
// numbers have two or four registers, and a tile is narrower.
constexpr int64_t kTileRows = 8, kTileVectors = kPanel / kLanes;
constexpr int64_t kSmallTileRows = 6, kSmallTileVectors = 1;

INLINE const Floats& floats_at(const float* x) { return *reinterpret_cast<const Floats*>(x); }

// The first row of a panel has the biases, each other one the weights of an input.
template <int64_t rows, int64_t vectors>
INLINE void multiply_tile(const float* x, int64_t x_step, const float* panel, int64_t inputs,
                          float* y, int64_t y_step) {
    Floats sums[rows][vectors];
    for (auto& row : sums) {
        for (int64_t v = 0; v < vectors; ++v) row[v] = floats_at(panel + v * kLanes);
    }
    for (int64_t i = 0; i < inputs; ++i) {
        panel += kPanel;
        Floats weights[vectors];
        for (int64_t v = 0; v < vectors; ++v) {
            weights[v] = floats_at(panel + v * kLanes);
            __builtin_prefetch(panel + v * kLanes + kAhead);
        }
        for (int64_t r = 0; r < rows; ++r) {
            const Floats number = x[r * x_step + i] - Floats{};
            for (int64_t v = 0; v < vectors; ++v) sums[r][v] += number * weights[v];
        }
    }
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t v = 0; v < vectors; ++v) {
            *reinterpret_cast<Floats*>(y + r * y_step + v * kLanes) = sums[r][v];
        }
    }
}

// The tile of `rows` rows, which are at most `most`.
template <int64_t most, int64_t vectors>
INLINE void multiply_rows(int64_t rows, const float* x, int64_t x_step, const float* panel,
                          int64_t inputs, float* y, int64_t y_step) {
    if constexpr (most > 1) {
        if (rows < most) {
            multiply_rows<most - 1, vectors>(rows, x, x_step, panel, inputs, y, y_step);
            return;
        }
    }
    multiply_tile<most, vectors>(x, x_step, panel, inputs, y, y_step);
}

// All rows of x with a panel, in tiles of about equal height.
template <int64_t most, int64_t vectors>
INLINE void multiply_in_tiles(const float* x, int64_t x_step, const float* panel, int64_t inputs,
                              float* y, int64_t y_step, int64_t rows) {
    for (int64_t tiles = (rows + most - 1) / most; tiles; --tiles) {
        const int64_t height = (rows + tiles - 1) / tiles;
        for (int64_t first = 0; first < kPanel; first += vectors * kLanes) {
            multiply_rows<most, vectors>(height, x, x_step, panel + first, inputs, y + first,
                                         y_step);
        }
        x += height * x_step, y += height * y_step, rows -= height;
    }
}

bool has_wide_registers() {
#if defined(__x86_64__) && defined(__GNUC__)
    return __builtin_cpu_supports("avx512f");
#else
    return false;
#endif
}

VECTORIZED
void multiply_floats(const float* x, int64_t x_step, const float* panel, int64_t inputs, float* y,
                     int64_t y_step, int64_t rows, bool is_wide) {
    if (is_wide) {
        multiply_in_tiles<kTileRows, kTileVectors>(x, x_step, panel, inputs, y, y_step, rows);
    } else {
        multiply_in_tiles<kSmallTileRows, kSmallTileVectors>(x, x_step, panel, inputs, y, y_step,
                                                             rows);
    }
}

// Numbers of 8 bits have a panel of bytes: biases, scales / 127 and 128 times the sums of the rows of
// W, and then four inputs at a time.
constexpr int64_t kGroup = 4;
constexpr int64_t kHeader = 3 * kPanel * sizeof(float);

#ifdef HAS_DOT_INSTRUCTIONS

// The compiler would keep an array of __m512i in memory, because that may alias everything.
typedef int32_t Ints __attribute__((vector_size(64)));

// y = s_x (Q_x Q_w') s_w + b; see int8.py. The numbers of x are 128 too large.
template <int64_t rows>
WITH_DOT_INSTRUCTIONS inline void multiply_bytes(const uint8_t* x, const float* scales,
                                                 const uint8_t* panel, int64_t groups, float* y,
                                                 int64_t y_step) {
    Ints totals[rows][kTileVectors];
    const float* header = reinterpret_cast<const float*>(panel);
    for (auto& row : totals) {
        for (int64_t v = 0; v < kTileVectors; ++v) {
            const float* zeros = header + 2 * kPanel + v * kLanes;
            row[v] = Ints{} - reinterpret_cast<Ints>(_mm512_loadu_si512(zeros));
        }
    }
    panel += kHeader;
    for (int64_t i = 0; i < groups; ++i, panel += kGroup * kPanel) {
        Ints weights[kTileVectors];
        for (int64_t v = 0; v < kTileVectors; ++v) {
            weights[v] = reinterpret_cast<Ints>(_mm512_loadu_si512(panel + v * kGroup * kLanes));
            __builtin_prefetch(panel + v * kGroup * kLanes + sizeof(float) * kAhead);
        }
        for (int64_t r = 0; r < rows; ++r) {
            int32_t four;
            std::memcpy(&four, x + (r * groups + i) * kGroup, sizeof four);
            const __m512i numbers = _mm512_set1_epi32(four);
            for (int64_t v = 0; v < kTileVectors; ++v) {
                totals[r][v] = reinterpret_cast<Ints>(
                    _mm512_dpbusd_epi32(reinterpret_cast<__m512i>(totals[r][v]), numbers,
                                        reinterpret_cast<__m512i>(weights[v])));
            }
        }
    }
    for (int64_t v = 0; v < kTileVectors; ++v) {
        const __m512 bias = _mm512_loadu_ps(header + v * kLanes);
        const __m512 factors = _mm512_loadu_ps(header + kPanel + v * kLanes);
        for (int64_t r = 0; r < rows; ++r) {
            const __m512 scale = _mm512_mul_ps(factors, _mm512_set1_ps(scales[r]));
            const __m512 sum = _mm512_cvtepi32_ps(reinterpret_cast<__m512i>(totals[r][v]));
            _mm512_storeu_ps(y + r * y_step + v * kLanes, _mm512_fmadd_ps(sum, scale, bias));
        }
    }
}

WITH_DOT_INSTRUCTIONS
void multiply_bytes(const uint8_t* x, const float* scales, const uint8_t* panel, int64_t groups,
                    float* y, int64_t y_step, int64_t rows) {
    for (int64_t left = rows; left > 0; left -= kTileRows) {
        switch (std::min(kTileRows, left)) {
            case 1: multiply_bytes<1>(x, scales, panel, groups, y, y_step); break;
            case 2: multiply_bytes<2>(x, scales, panel, groups, y, y_step); break;
            case 3: multiply_bytes<3>(x, scales, panel, groups, y, y_step); break;
            case 4: multiply_bytes<4>(x, scales, panel, groups, y, y_step); break;
            case 5: multiply_bytes<5>(x, scales, panel, groups, y, y_step); break;
            case 6: multiply_bytes<6>(x, scales, panel, groups, y, y_step); break;
            case 7: multiply_bytes<7>(x, scales, panel, groups, y, y_step); break;
            default: multiply_bytes<8>(x, scales, panel, groups, y, y_step);
        }
        x += kTileRows * groups * kGroup, scales += kTileRows, y += kTileRows * y_step;
    }
}

#endif

// Calls multiply(panel, first row, rows, result) for each panel. The last one may be wider than what
// is left of y, so its results are copied from a tile.
template <typename Multiply>
void for_panels(int64_t outputs, int64_t rows, float* y, int64_t y_step, const Multiply& multiply) {
    for (int64_t first = 0; first < outputs; first += kPanel) {
        const int64_t number = first / kPanel, width = std::min(kPanel, outputs - first);
        if (width == kPanel) {
            multiply(number, 0, rows, y + first, y_step);
            continue;
        }
        for (int64_t row = 0; row < rows; row += kTileRows) {
            float tile[kTileRows * kPanel];
            const int64_t height = std::min(kTileRows, rows - row);
            multiply(number, row, height, tile, kPanel);
            for (int64_t r = 0; r < height; ++r) {
                std::copy_n(tile + r * kPanel, width, y + (row + r) * y_step + first);
            }
        }
    }
}

void multiply_int8(const PanelProduct& product, const float* x, int64_t x_step, float* y,
                   int64_t y_step, int64_t rows) {
#ifdef HAS_DOT_INSTRUCTIONS
    const int64_t groups = (product.inputs + kGroup - 1) / kGroup, width = groups * kGroup;
    std::vector<uint8_t> numbers(rows * width);
    std::vector<float> scales(rows);
    for (int64_t row = 0; row < rows; ++row) {
        quantize_rows(x + row * x_step, numbers.data() + row * width, &scales[row], 1,
                      product.inputs);
    }
    const uint8_t* panels = static_cast<const uint8_t*>(product.panels);
    for_panels(product.outputs, rows, y, y_step,
               [&](int64_t panel, int64_t row, int64_t count, float* to, int64_t to_step) {
                   multiply_bytes(numbers.data() + row * width, &scales[row],
                                  panels + panel * (kHeader + width * kPanel), groups, to, to_step,
                                  count);
               });
#endif
}

}  // namespace

void multiply_panels(const PanelProduct* product, const float* x, int64_t x_step, float* y,
                     int64_t y_step, int64_t rows) {
    if (product->uses_int8) {
        multiply_int8(*product, x, x_step, y, y_step, rows);
        return;
    }
    static const bool is_wide = has_wide_registers();
    const float* panels = static_cast<const float*>(product->panels);
    const int64_t inputs = product->inputs;
    for_panels(product->outputs, rows, y, y_step,
               [&](int64_t panel, int64_t row, int64_t count, float* to, int64_t to_step) {
                   multiply_floats(x + row * x_step, x_step, panels + panel * kPanel * (inputs + 1),
                                   inputs, to, to_step, count, is_wide);
               });
}
