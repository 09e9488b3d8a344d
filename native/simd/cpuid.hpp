// What an x86 processor can do, and what the operating system lets it do. By hand, because the
// compilers' __builtin_cpu_supports needs a library that clang-cl does not link.
#pragma once

#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

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

// AVX-VNNI besides (Alder Lake, Zen 5): convolutions_avxvnni.cpp.
inline bool has_avxvnni() {
    return has_avx2() && CpuidLeaf(7).a >= 1 && all(CpuidLeaf(7, 1).a, bit(4));
}

// AVX2, AVX-512 F, DQ, BW, VL and VNNI (Cascade Lake): convolutions_vnni.cpp.
inline bool has_vnni() {
    constexpr unsigned masks_and_zmm = bit(5) | bit(6) | bit(7);
    const CpuidLeaf seven(7);
    return has_avx2() && all(saved_registers(), masks_and_zmm) &&
           all(seven.b, bit(16) | bit(17) | bit(30) | bit(31)) && all(seven.c, bit(11));
}

// VBMI, BITALG and VPOPCNTDQ besides (Ice Lake, Zen 4): those of *_avx512.cpp.
inline bool has_avx512() {
    return has_vnni() && all(CpuidLeaf(7).c, bit(1) | bit(12) | bit(14));
}

// VNNI, AMX-TILE and AMX-INT8 (Sapphire Rapids): convolutions_amx.cpp. Linux reserves the registers
// of a process only after it has asked for them.
inline bool may_use_amx() {
#if defined(__linux__) && defined(SYS_arch_prctl)
    constexpr long request_permission = 0x1023, tile_data = 18;
    return has_vnni() && all(saved_registers(), bit(17) | bit(18)) &&
           all(CpuidLeaf(7).d, bit(24) | bit(25)) &&
           syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
#else
    return false;
#endif
}

}  // namespace
}  // namespace hamflow
