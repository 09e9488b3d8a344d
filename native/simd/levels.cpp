// Compiled for the baseline: nothing here may assume what it is about to find out.
#include "levels.hpp"

#include <atomic>
#include <cstring>

#if defined(HAMFLOW_X86)
#include "cpuid.hpp"
#endif

namespace hamflow {
namespace {

// Null: automatic.
std::atomic<const Kernels*> forced{nullptr};

}  // namespace

std::vector<const Kernels*> available_kernels() {
    std::vector<const Kernels*> list = {&portable_kernels};
#if defined(HAMFLOW_X86)
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
