// The limits of this machine, with which the benchmarks compare the kernels:
//
//     peaks LEVEL THREADS min_projection        entries of the 4D cost per second
//     peaks LEVEL THREADS fused_multiply_add    multiply-adds per second
//     peaks LEVEL THREADS copy BYTES            bytes read and written per second by plain copies
//
// Prints one number, the best of three measurements. LEVEL must be one that the CPU supports.
#include "peaks.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

using namespace hamflow;

namespace {

const Peaks* const all_peaks[] = HAMFLOW_EACH_LEVEL(peaks);

// Returns the seconds that body(thread) takes on all threads together.
template <class Body>
double timed(int threads, const Body& body) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::thread> workers;
    for (int thread = 1; thread < threads; ++thread) workers.emplace_back(body, thread);
    body(0);
    for (std::thread& worker : workers) worker.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double register_rate(double (*kernel)(long long), int threads) {
    const auto run = [&](long long rounds) {
        return timed(threads, [&](int) { kernel(rounds); });
    };
    long long rounds = 1 << 16;
    while (run(rounds) < 0.05) rounds *= 2;  // long enough for the clock and for starting threads
    const double work = kernel(1) * static_cast<double>(rounds) * threads;
    double best = 0;
    for (int k = 0; k < 3; ++k) best = std::max(best, work / run(rounds));
    return best;
}

double copy_rate(std::size_t size, int threads) {
    constexpr std::size_t page = 4096;  // copies at other offsets can be far slower
    const std::size_t room = (size + page - 1) / page * page;
    std::vector<char*> from, to;
    for (int thread = 0; thread < threads; ++thread)
        for (std::vector<char*>* buffers : {&from, &to}) {
            buffers->push_back(static_cast<char*>(std::aligned_alloc(page, room)));
            if (!buffers->back()) return 0;
            std::memset(buffers->back(), 1, room);
        }
    const std::size_t rounds = std::max<std::size_t>(1, (std::size_t(1) << 28) / size);
    const auto copy = [&](int thread) {
        const auto at = static_cast<std::size_t>(thread);
        for (std::size_t r = 0; r < rounds; ++r) {
            std::memcpy(to[at], from[at], size);
            asm volatile("" : : "r"(to[at]) : "memory");  // so that no round is optimized away
        }
    };
    double best = 0;
    for (int k = 0; k < 3; ++k)
        best = std::max(best, 2.0 * static_cast<double>(size * rounds) * threads /
                                  timed(threads, copy));
    for (std::vector<char*>* buffers : {&from, &to})
        for (char* buffer : *buffers) std::free(buffer);
    return best;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string level = argc > 1 ? argv[1] : "", what = argc > 3 ? argv[3] : "";
    const int threads = argc > 2 ? std::atoi(argv[2]) : 0;
    for (const Peaks* peaks : all_peaks) {
        if (level != peaks->level || threads < 1) continue;
        double rate = 0;
        if (what == "min_projection") rate = register_rate(peaks->min_projection, threads);
        if (what == "fused_multiply_add") rate = register_rate(peaks->fused_multiply_add, threads);
        if (what == "copy" && argc > 4 && std::atoll(argv[4]) > 0)
            rate = copy_rate(static_cast<std::size_t>(std::atoll(argv[4])), threads);
        if (rate > 0) return std::printf("%.6e\n", rate) > 0 ? 0 : 1;
    }
    std::fprintf(stderr, "usage: peaks LEVEL THREADS min_projection|fused_multiply_add|copy BYTES\n");
    return 2;
}
