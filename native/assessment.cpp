#include "assessment.hpp"

#include <algorithm>

#include "completion_kernels.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {

constexpr int rows_at_once = 4;

template <class Problem>
void by_rows(int h, const Problem& problem, void (*kernel)(const Problem&, int, int)) {
    parallel_for((h + rows_at_once - 1) / rows_at_once, [&](int block) {
        kernel(problem, block * rows_at_once, std::min(h, (block + 1) * rows_at_once));
    });
}

}  // namespace

void there_and_back(const ThereAndBack& p) {
    by_rows(p.h, p, completion_kernels().there_and_back);
}

void assess(const Assessment& p) { by_rows(p.ways.h, p, completion_kernels().assess); }

}  // namespace hamflow
