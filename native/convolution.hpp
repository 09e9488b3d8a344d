// Convolutions in whole numbers, the work of the descriptor networks. Products and sums are exact,
// so the bits of a descriptor are the same on every instruction set.
//
// Activations are bytes, channels last. Of a kernel's input, what lies side by side in memory is one
// run: the pixels of a row of the kernel, or a single pixel if the taps are apart. Runs are read in
// words of 4 bytes: 4 activations of 8 bits, or 2 of 16 bits with sign ("wide", the first layers).
#pragma once

#include <cstddef>
#include <cstdint>

namespace hamflow {

// Layers have a multiple of this many outputs; superfluous ones have zero weights.
constexpr int output_group = 32;

// What becomes of the sums of a layer, times the scale of their channel:
enum class Finish {
    tanh,    // bytes 128 + 127 tanh; the scale leads to units of tanh_range / 32767
    relu,    // bytes, `levels` to the unit, of the positive part, after adding `added`
    signs,   // one bit per channel: whether the sum is positive
    values,  // floats
};

constexpr float tanh_range = 3;  // beyond, tanh is closer to 1 than the step of a byte

// tanh(tanh_range z), |z| < 1, by an odd polynomial that is off by less than .0025, a third of the
// step of a byte. In fractions of 32768: the square of z, the polynomial by Horner's rule, times z
// and times 127 * 32, each product rounded. The coefficients are multiplied by 1024.
constexpr std::int16_t tanh_coefficients[] = {-5706, 19066, -25595, 18201, -7989, 3040};

// One row of the output of one layer.
struct ConvolutionRow {
    const std::uint8_t* const* runs;  // where the runs of the first pixel begin
    int run_count, run_words;
    std::ptrdiff_t pitch;  // bytes from the input of a pixel to that of the next
    int pixels, outputs;
    bool wide;
    bool pairs_fit;               // see WeightPacking
    const std::uint8_t* weights;  // from pack_weights
    const std::int32_t* first;    // what each sum begins with
    const float* scale;
    Finish finish;
    void* out;           // pixels x outputs; for signs, a uint32 per group of outputs
    const float* added;  // pixels x outputs, or null
    float* kept;         // the positive part itself, or null
    float levels;
};

// Weights in the order in which convolve_row reads them. `weights` are outputs x words x 2
// (wide) or 4, the latter within -127..127; there must be room for as many int16.
// `pairs_fit`: no two neighboring weights of 8 bits can, with activations up to 255, have products
// whose sum exceeds 16 bits. Then AVX2 can multiply bytes.
struct WeightPacking {
    const std::int16_t* weights;
    int outputs, words;
    bool wide, pairs_fit;
    std::uint8_t* packed;
};

// Rows of layers, and their weights in the order in which they are read. Instructions that multiply
// bytes come and go between processors of one level, so there are more of these than levels.
struct Convolutions {
    const char* name;
    void (*pack_weights)(const WeightPacking&);
    void (*convolve_row)(const ConvolutionRow&);
};
extern const Convolutions reference_convolutions;
namespace portable { extern const Convolutions convolutions; }
namespace avx2 { extern const Convolutions convolutions; }
namespace avxvnni { extern const Convolutions convolutions; }
namespace vnni { extern const Convolutions convolutions; }
namespace amx { extern const Convolutions convolutions; }
namespace neon { extern const Convolutions convolutions; }

}  // namespace hamflow
