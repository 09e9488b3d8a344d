// Compiled for the baseline: nothing here may assume what it is about to find out.
#include "levels.hpp"

#include <atomic>
#include <cstring>

#if defined(HAMFLOW_X86)
#include <cpuid.h>
#endif

namespace hamflow {
namespace {

#if defined(HAMFLOW_X86)

// Not every compiler that knows the other names knows this one.
bool has_lzcnt() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000001u, &a, &b, &c, &d) && (c >> 5 & 1);
}

// __builtin_cpu_supports also asks whether the operating system saves the registers.
bool has_avx2() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2") && has_lzcnt();
}

bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512bitalg") &&
           __builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512vnni");
}

#endif

// Null: automatic.
std::atomic<const Kernels*> forced{nullptr};

}  // namespace

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> list = {&portable_kernels};
#if defined(HAMFLOW_X86)
    __builtin_cpu_init();
    if (has_avx2()) list.push_back(&avx2_kernels);
    if (has_avx512()) list.push_back(&avx512_kernels);
#endif
#if defined(HAMFLOW_NEON)
    // Every AArch64 processor has it.
    list.push_back(&neon_kernels);
#endif
    return list;
}

const Kernels& active_kernels() {
    static const Kernels* const best = available_kernels().back();
    const Kernels* chosen = forced.load(std::memory_order_relaxed);
    return chosen ? *chosen : *best;
}

bool force_kernels(const char* name) {
    if (!name || !*name) {
        forced = nullptr;
        return true;
    }
    std::vector<const Kernels*> list = available_kernels();
    list.push_back(&reference_kernels);
    for (const Kernels* k : list) {
        if (std::strcmp(k->name, name) != 0) continue;
        forced = k;
        return true;
    }
    return false;
}

}  // namespace hamflow
