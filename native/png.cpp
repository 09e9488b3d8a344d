#include "png.hpp"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace hamflow {

namespace {

// Whichever neighbor is nearest to left + up - corner; ties in this order.
int paeth(int left, int up, int corner) {
    const int to_left = std::abs(up - corner), to_up = std::abs(left - corner);
    const int to_corner = std::abs(left + up - 2 * corner);
    if (to_left <= to_up && to_left <= to_corner) return left;
    return to_up <= to_corner ? up : corner;
}

}  // namespace

bool png_unfilter(const std::uint8_t* lines, std::size_t rows, std::size_t bytes, std::size_t depth,
                  std::uint8_t* out) {
    // Pixels outside of the picture count as zero.
    const std::vector<std::uint8_t> nothing(bytes);
    const std::uint8_t* above = nothing.data();
    const std::size_t head = depth < bytes ? depth : bytes;  // the first pixel has none to its left
    for (std::size_t y = 0; y < rows; ++y, above = out, out += bytes) {
        const std::uint8_t filter = *lines++;
        std::memcpy(out, lines, bytes);
        lines += bytes;
        switch (filter) {
            case 0:
                break;
            case 1:
                for (std::size_t i = head; i < bytes; ++i) out[i] += out[i - depth];
                break;
            case 2:
                for (std::size_t i = 0; i < bytes; ++i) out[i] += above[i];
                break;
            case 3:
                for (std::size_t i = 0; i < head; ++i) out[i] += above[i] / 2;
                for (std::size_t i = head; i < bytes; ++i)
                    out[i] += (out[i - depth] + above[i]) / 2;
                break;
            case 4:
                for (std::size_t i = 0; i < head; ++i) out[i] += above[i];
                for (std::size_t i = head; i < bytes; ++i)
                    out[i] += paeth(out[i - depth], above[i], above[i - depth]);
                break;
            default:
                return false;
        }
    }
    return true;
}

}  // namespace hamflow
