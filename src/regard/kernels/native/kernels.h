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
