// Images between the layers of a descriptor network, and loops over their rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "simd/common.hpp"
#include "threads.hpp"

namespace hamflow {
namespace {  // internal linkage: see simd/common.hpp

constexpr int input_channels = 4;  // of 16 bits: three colors, and zero or the local contrast

std::int16_t whole(float x) {
    const float within = x < -32768.0f ? -32768.0f : x > 32767.0f ? 32767.0f : x;
    return static_cast<std::int16_t>(round_to_int(within));
}

// Rows begin..end for each part of [0, rows).
template <class Body>
void parallel_rows(int rows, int threads, const Body& body) {
    // Several parts for each thread, because not all cores are equally fast.
    const int parts = std::min(rows, threads > 0 ? threads : 8 * get_num_threads());
    parallel_for(parts, [&](int part) {
        body(static_cast<int>(static_cast<long long>(rows) * part / parts),
             static_cast<int>(static_cast<long long>(rows) * (part + 1) / parts));
    });
}

// An image of several bytes per pixel with a border.
class Plane {
   public:
    Plane(int h, int w, int bytes, int border)
        : h_(h), w_(w), bytes_(bytes), border_(border),
          data_(static_cast<std::size_t>(h + 2 * border) * (w + 2 * border) * bytes) {}

    int h() const { return h_; }
    int w() const { return w_; }
    int bytes() const { return bytes_; }
    int border() const { return border_; }
    std::uint8_t* at(int y, int x) { return data_.data() + offset(y, x); }
    const std::uint8_t* at(int y, int x) const { return data_.data() + offset(y, x); }

    void clear_border() {
        const std::size_t side = static_cast<std::size_t>(border_) * bytes_;
        const std::size_t row = static_cast<std::size_t>(w_ + 2 * border_) * bytes_;
        std::memset(at(-border_, -border_), 0, border_ * row);
        std::memset(at(h_, -border_), 0, border_ * row);
        for (int y = 0; y < h_; ++y) {
            std::memset(at(y, -border_), 0, side);
            std::memset(at(y, w_), 0, side);
        }
    }

   private:
    std::size_t offset(int y, int x) const {
        return (static_cast<std::size_t>(y + border_) * (w_ + 2 * border_) + (x + border_)) *
               bytes_;
    }
    int h_, w_, bytes_, border_;
    Buffer<std::uint8_t> data_;
};

std::int16_t* shorts(std::uint8_t* p) { return reinterpret_cast<std::int16_t*>(p); }

}  // namespace
}  // namespace hamflow
