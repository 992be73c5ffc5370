// The kernels of this folder, each explained where it is defined.

#pragma once

#include <cstdint>

// quantize.cpp
void quantize_rows(const float* x, uint8_t* numbers, float* scales, int64_t rows, int64_t width);
