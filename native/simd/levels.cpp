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
std::atomic<const Convolutions*> forced_convolutions{nullptr};

// Those of this machine that level number `level` may use, worst to best.
std::vector<const Convolutions*> convolutions_until([[maybe_unused]] int level) {
    std::vector<const Convolutions*> found{&portable::convolutions};
#if defined(HAMFLOW_X86)
    if (level > 0 && has_avx2()) found.push_back(&avx2::convolutions);
#if defined(HAMFLOW_AVXVNNI)
    if (level > 0 && has_avxvnni()) found.push_back(&avxvnni::convolutions);
#endif
    if (level > 1 && has_vnni()) found.push_back(&vnni::convolutions);
#if defined(HAMFLOW_AMX)
    if (level > 1 && may_use_amx()) found.push_back(&amx::convolutions);
#endif
#elif defined(HAMFLOW_NEON)
    if (level > 0) found.push_back(&neon::convolutions);
#endif
    return found;
}

template <class Table>
bool force(const char* name, std::vector<const Table*> tables, const Table& reference,
           std::atomic<const Table*>& forced_table) {
    if (!name || !*name) {
        forced_table = nullptr;
        return true;
    }
    tables.push_back(&reference);
    for (const Table* table : tables) {
        if (std::strcmp(table->name, name) != 0) continue;
        forced_table = table;
        return true;
    }
    return false;
}

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
    return force(name, available_kernels(), reference_kernels, forced);
}

std::vector<const Convolutions*> available_convolutions() {
    return convolutions_until(static_cast<int>(std::size(compiled)));
}

const Convolutions& active_convolutions() {
    static const auto best = [] {
        std::vector<const Convolutions*> of_level;
        for (int level = 0; level < static_cast<int>(std::size(compiled)); ++level)
            of_level.push_back(convolutions_until(level).back());
        return of_level;
    }();
    static const Convolutions* const best_of_all = available_convolutions().back();
    if (const Convolutions* chosen = forced_convolutions.load(std::memory_order_relaxed))
        return *chosen;
    const Kernels* level = forced.load(std::memory_order_relaxed);
    if (level == &reference_kernels) return reference_convolutions;
    return level ? *best[static_cast<std::size_t>(active_level())] : *best_of_all;
}

bool force_convolutions(const char* name) {
    return force(name, available_convolutions(), reference_convolutions, forced_convolutions);
}

}  // namespace hamflow
