// Parts of a kernel on the threads of torch.

#include "threads.h"

#include <algorithm>
#include <atomic>

namespace {

// GOMP_parallel(function, data, threads, flags) of the OpenMP that torch has loaded. With threads of
// our own, those of torch would still wait actively for work on the same cores.
typedef void (*Parallel)(void (*)(void*), void*, unsigned, unsigned);
std::atomic<Parallel> parallel{nullptr};

struct Work {
    const std::function<void(int64_t)>& part;
    const int64_t count;
    std::atomic<int64_t> next{0};
};

void take_parts(void* data) {
    Work& work = *static_cast<Work*>(data);
    for (int64_t number; (number = work.next++) < work.count;) work.part(number);
}

}  // namespace

void use_openmp(const void* address) {
    parallel = reinterpret_cast<Parallel>(reinterpret_cast<uintptr_t>(address));
}

void run_parts(int64_t count, int64_t threads, const std::function<void(int64_t)>& part) {
    Work work{part, count};
    threads = std::min(threads, count);
    if (threads > 1 && parallel) {
        parallel.load()(take_parts, &work, static_cast<unsigned>(threads), 0);
    } else {
        take_parts(&work);
    }
}

void run_shares(int64_t rows, int64_t least, int64_t threads,
                const std::function<void(int64_t, int64_t)>& part) {
    const int64_t shares = std::max<int64_t>(1, std::min(threads, rows / least));
    run_parts(shares, threads, [&](int64_t share) {
        const int64_t first = rows * share / shares, end = rows * (share + 1) / shares;
        part(first, end - first);
    });
}
