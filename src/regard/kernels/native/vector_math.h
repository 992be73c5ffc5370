// Functions that the compiler turns into vector instructions, and the attribute that asks for them.
// The build needs -fno-math-errno -fno-trapping-math -fopenmp-simd for that, and must not reorder sums.

#pragma once

#include <cstdint>
#include <cstring>

// On x86-64, GCC compiles a function once for AVX-512, once for AVX2 and once for any processor.
// The system chooses one of them when the module is loaded.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define VECTORIZED __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define VECTORIZED
#endif

#if defined(__GNUC__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif

// e^x to 2 units in the last place, for x from -87.3 to 88.7
//
//     e^x = 2^n e^r    n = round(x / ln 2)    r = x - n ln 2, in two parts    |r| <= ln 2 / 2
INLINE float exp_within(float x) {
    constexpr float kLog2e = 1.44269504f, kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
    constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to a whole number
    const float shifted = x * kLog2e + kRound;
    const float n = shifted - kRound;
    const float r = (x - n * kLn2High) - n * kLn2Low;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    int32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const uint32_t power = (static_cast<uint32_t>(bits) + 127u) << 23;
    float scale;
    std::memcpy(&scale, &power, sizeof scale);
    return p * scale;
}

// e^x; 0 below -87.3, and e^88.7 above 88.7. NaN stays NaN.
INLINE float exp_of(float x) {
    float limited = x > 88.7f ? 88.7f : x;
    limited = x < -87.3f ? -87.3f : limited;
    const float result = x < -87.3f ? 0.0f : exp_within(limited);
    return x != x ? x : result;
}

// e^x for x <= 0; at least e^-87.3, which adds nothing to a sum of 1 or more. NaN stays NaN.
INLINE float exp_of_difference(float x) { return exp_within(x < -87.3f ? -87.3f : x); }

INLINE float sigmoid_of(float x) { return 1.0f / (1.0f + exp_of(-x)); }

// tanh x to 3 units in the last place.
//
//     tanh x = 1 - 2 / (e^{2x} + 1)    where the difference loses no digits
//     tanh x = x + x^3 p(x^2)          below 0.625, with the polynomial of Cephes
INLINE float tanh_of(float x) {
    const float square = x * x;
    float p = -5.70498872745e-3f;
    p = p * square + 2.06390887954e-2f;
    p = p * square - 5.37397155531e-2f;
    p = p * square + 1.33314422036e-1f;
    p = p * square - 3.33332819422e-1f;
    const float small = p * square * x + x;
    const float large = 1.0f - 2.0f / (exp_of(2.0f * x) + 1.0f);
    return square < 0.390625f ? small : large;
}
