// Compiled for the baseline: nothing here may assume what it is about to find out.
#include "levels.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>

#if defined(HAMFLOW_X86)
#include "cpuid.hpp"
#endif

namespace hamflow {
namespace {

const Kernels* const compiled[] = HAMFLOW_EACH_LEVEL(kernels);

int best_level() {
#if defined(HAMFLOW_X86)
    return has_avx512() ? 2 : has_avx2() ? 1 : 0;
#elif defined(HAMFLOW_NEON)
    return 1;  // every AArch64 processor has it
#else
    return 0;
#endif
}

// Null: automatic.
std::atomic<const Kernels*> forced{nullptr};

}  // namespace

std::vector<const Kernels*> available_kernels() {
    return {compiled, compiled + best_level() + 1};
}

const Kernels& active_kernels() {
    static const Kernels* const best = compiled[best_level()];
    const Kernels* chosen = forced.load(std::memory_order_relaxed);
    return chosen ? *chosen : *best;
}

int active_level() {
    const auto* level = std::find(std::begin(compiled), std::end(compiled), &active_kernels());
    return level == std::end(compiled) ? 0 : static_cast<int>(level - compiled);
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
