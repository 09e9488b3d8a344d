// What every instruction set's code shares.
//
// Each kernels_<level>.cpp is compiled with flags of its own. An inline function or template that
// two of them instantiate would be merged by the linker, perhaps to the version that only the
// better machine can run. So all of this is either forced inline or has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

#include "compiler.hpp"
#include "pages.hpp"

namespace hamflow {
namespace {

// Uninitialized memory on a cache line's boundary.
template <class T>
class Buffer {
    static_assert(std::is_trivially_destructible<T>::value, "only plain data");

   public:
    Buffer() = default;
    explicit Buffer(std::size_t n)
        : block_(take_block(n * sizeof(T))), data_(static_cast<T*>(block_.data)), size_(n) {}
    Buffer(std::size_t n, T value) : Buffer(n) { fill(value); }
    Buffer(Buffer&& other) noexcept
        : block_(std::exchange(other.block_, Block{})),
          data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Buffer& operator=(Buffer&& other) noexcept {
        std::swap(block_, other.block_);
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Buffer() { give_block(block_); }

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }
    const T& operator[](std::size_t i) const { return data_[i]; }
    std::size_t size() const { return size_; }
    void fill(T value) {
        for (std::size_t i = 0; i < size_; ++i) data_[i] = value;
    }

   private:
    Block block_;
    T* data_ = nullptr;
    std::size_t size_ = 0;
};

// body(0), body(1), ..., body(N - 1) with the index as a compile-time constant: GCC keeps arrays
// in registers only when it never sees a run-time index, so hot loops are unrolled in this way.
template <int... J, class Body>
HAMFLOW_INLINE void unroll_indices(std::integer_sequence<int, J...>, Body&& body) {
    (body(std::integral_constant<int, J>()), ...);
}
template <int N, class Body>
HAMFLOW_INLINE void unroll(Body&& body) {
    unroll_indices(std::make_integer_sequence<int, N>(), body);
}

HAMFLOW_INLINE void prefetch(const void* p) { __builtin_prefetch(p); }

HAMFLOW_INLINE int round_up(int n, int multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

HAMFLOW_INLINE int popcount64(std::uint64_t x) { return __builtin_popcountll(x); }

HAMFLOW_INLINE std::int16_t saturate16(int x) {
    return static_cast<std::int16_t>(x < -32768 ? -32768 : (x > 32767 ? 32767 : x));
}

// Rounds to the nearest even whole number; |y| < 2^21. The sum's lowest bits are those of the whole number.
HAMFLOW_INLINE std::int32_t round_to_int(float y) {
    const float shifted = y + 12582912.0f;
    std::int32_t bits;
    std::memcpy(&bits, &shifted, 4);
    return bits - 0x4B400000;
}

}  // namespace
}  // namespace hamflow
