// What an x86 processor can do, and what the operating system lets it do. By hand, because the
// compilers' __builtin_cpu_supports needs a library that clang-cl does not link.
#pragma once

#include <cpuid.h>

namespace hamflow {
namespace {

struct CpuidLeaf {
    unsigned a = 0, b = 0, c = 0, d = 0;

    // A leaf that the processor does not have is all 0.
    CpuidLeaf(unsigned leaf, unsigned part = 0) {
        const unsigned first = leaf & 0x80000000u;
        if (static_cast<unsigned>(__get_cpuid_max(first, nullptr)) >= leaf)
            __cpuid_count(leaf, part, a, b, c, d);
    }
};

constexpr unsigned bit(int n) { return 1u << n; }
constexpr bool all(unsigned of, unsigned bits) { return (of & bits) == bits; }

// Which registers the operating system saves (XCR0); 0 if it does not say. The bytes are those of
// xgetbv, whose name is known to compilers only with a flag.
inline unsigned saved_registers() {
    if (!all(CpuidLeaf(1).c, bit(27))) return 0;
    unsigned low = 0, high = 0;
    asm volatile(".byte 0x0f, 0x01, 0xd0" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

// AVX2, FMA, POPCNT, BMI, BMI2 and LZCNT: the flags of the files *_avx2.cpp.
inline bool has_avx2() {
    constexpr unsigned sse_and_avx = bit(1) | bit(2);
    return all(saved_registers(), sse_and_avx) &&
           all(CpuidLeaf(1).c, bit(12) | bit(23) | bit(28)) &&
           all(CpuidLeaf(7).b, bit(3) | bit(5) | bit(8)) && all(CpuidLeaf(0x80000001u).c, bit(5));
}

// AVX-512 F, DQ, BW, VL, VBMI, VNNI, BITALG and VPOPCNTDQ besides: those of *_avx512.cpp.
inline bool has_avx512() {
    constexpr unsigned masks_and_zmm = bit(5) | bit(6) | bit(7);
    const CpuidLeaf seven(7);
    return has_avx2() && all(saved_registers(), masks_and_zmm) &&
           all(seven.b, bit(16) | bit(17) | bit(30) | bit(31)) &&
           all(seven.c, bit(1) | bit(11) | bit(12) | bit(14));
}

}  // namespace
}  // namespace hamflow
