// Number of bits that are set, for files that are compiled for any processor.
#pragma once

#include <cstdint>

namespace hamflow {
namespace {  // internal linkage: see simd/common.hpp

// By sums of ever larger groups of bits.
inline int popcount(std::uint64_t x) {
    x -= (x >> 1) & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + ((x >> 2) & 0x3333333333333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return static_cast<int>((x * 0x0101010101010101u) >> 56);
}

}  // namespace
}  // namespace hamflow
