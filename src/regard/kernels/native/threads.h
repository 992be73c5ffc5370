// Work on parts of a kernel at once.

#pragma once

#include <cstdint>
#include <functional>

// Tells where GOMP_parallel is; without it, there is one thread.
void use_openmp(const void* address);

// Calls part(0), ..., part(count - 1) on up to `threads` threads, of which one is the caller's.
void run_parts(int64_t count, int64_t threads, const std::function<void(int64_t)>& part);

// Calls part(first row, number of rows) for about equal shares of the rows, none of which is smaller
// than `least` unless it is the only one.
void run_shares(int64_t rows, int64_t least, int64_t threads,
                const std::function<void(int64_t, int64_t)>& part);
