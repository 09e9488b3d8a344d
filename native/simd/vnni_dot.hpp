// Sums of products for convolution.inl: AVX-512 VNNI multiplies 4 pairs of bytes, or 2 of 16 bits,
// and adds them to a lane in one instruction.
#pragma once

#include <immintrin.h>

#include "../convolution.hpp"
#include "common.hpp"

namespace hamflow {
namespace {

// 16 sums stay in registers, with the weights and one activation; with more of them GCC 12 spills.
constexpr int tile_pixels = 8;

// Of one group of outputs and one word.
constexpr std::size_t packed_bytes(bool) { return 4 * output_group; }

void pack_weights(const WeightPacking& p) {
    const int per_word = p.wide ? 2 : 4;
    std::uint8_t* to = p.packed;
    for (int group = 0; group < p.outputs; group += output_group)
        for (int word = 0; word < p.words; ++word)
            for (int c = 0; c < output_group; ++c)
                for (int k = 0; k < per_word; ++k) {
                    const std::size_t row = static_cast<std::size_t>(group + c) * p.words + word;
                    const std::int16_t weight = p.weights[row * per_word + k];
                    *to++ = static_cast<std::uint8_t>(weight);
                    if (p.wide) *to++ = static_cast<std::uint8_t>(weight >> 8);
                }
}

template <bool wide>
HAMFLOW_INLINE __m512i add_products(__m512i sum, __m512i activations, __m512i weights) {
    return wide ? _mm512_dpwssd_epi32(sum, activations, weights)
                : _mm512_dpbusd_epi32(sum, activations, weights);
}

// Not inlined: what the caller keeps in registers would push the weights out of theirs.
template <bool wide, int pixels>
HAMFLOW_NOINLINE void dot_tile(const ConvolutionRow& r, int x, const std::uint8_t* weights,
                             const std::int32_t* first, std::int32_t* sums) {
    __m512i low[pixels], high[pixels];
    for (int p = 0; p < pixels; ++p) {
        low[p] = _mm512_loadu_si512(first);
        high[p] = _mm512_loadu_si512(first + 16);
    }
    const std::ptrdiff_t pitch = r.pitch;
    for (int run = 0; run < r.run_count; ++run) {
        const std::uint8_t* a = r.runs[run] + x * pitch;
        for (int word = 0; word < r.run_words; ++word, a += 4, weights += 128) {
            const __m512i w0 = _mm512_loadu_si512(weights), w1 = _mm512_loadu_si512(weights + 64);
            for (int p = 0; p < pixels; ++p) {
                std::int32_t four;
                std::memcpy(&four, a + p * pitch, 4);
                const __m512i spread = _mm512_set1_epi32(four);
                low[p] = add_products<wide>(low[p], spread, w0);
                high[p] = add_products<wide>(high[p], spread, w1);
            }
        }
    }
    for (int p = 0; p < pixels; ++p) {
        _mm512_storeu_si512(sums + p * output_group, low[p]);
        _mm512_storeu_si512(sums + p * output_group + 16, high[p]);
    }
}

// To whole numbers of 32767 at most; the negative ones may be smaller.
HAMFLOW_INLINE __m512i scaled(const std::int32_t* sums, const float* scale) {
    const __m512 sum = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums));
    const __m512 y = _mm512_mul_ps(sum, _mm512_loadu_ps(scale));
    return _mm512_cvtps_epi32(_mm512_min_ps(y, _mm512_set1_ps(32767)));
}

HAMFLOW_INLINE void tanh_bytes(const std::int32_t* sums, const float* scale, std::uint8_t* out) {
    __m512i z = _mm512_packs_epi32(scaled(sums, scale), scaled(sums + 16, scale + 16));
    z = _mm512_max_epi16(z, _mm512_set1_epi16(-32767));
    const __m512i square = _mm512_mulhrs_epi16(z, z);
    __m512i sum = _mm512_set1_epi16(tanh_coefficients[0]);
    for (int k = 1; k < 6; ++k)
        sum = _mm512_add_epi16(_mm512_mulhrs_epi16(sum, square),
                               _mm512_set1_epi16(tanh_coefficients[k]));
    sum = _mm512_mulhrs_epi16(_mm512_mulhrs_epi16(sum, z), _mm512_set1_epi16(127 * 32));
    // Packing took 4 sums of either half in turns.
    const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
    sum = _mm512_permutexvar_epi64(order, _mm512_add_epi16(sum, _mm512_set1_epi16(128)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), _mm512_cvtepi16_epi8(sum));
}

HAMFLOW_INLINE std::uint32_t sign_bits(const std::int32_t* sums) {
    const __m512i zero = _mm512_setzero_si512();
    const std::uint32_t low = _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(sums), zero);
    const std::uint32_t high = _mm512_cmpgt_epi32_mask(_mm512_loadu_si512(sums + 16), zero);
    return low | high << 16;
}

}  // namespace
}  // namespace hamflow
