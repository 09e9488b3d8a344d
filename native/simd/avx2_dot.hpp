// Sums of products for convolution.inl: of bytes where no pair of products exceeds 16 bits, and else
// of 16 bits, which takes half as long again. Either way they are exact. AVX-VNNI multiplies 4 pairs
// of bytes, or 2 of 16 bits, and adds them to a lane in one instruction, whatever their size.
#pragma once

#include <immintrin.h>

#include "../convolution.hpp"
#include "common.hpp"

namespace hamflow {
namespace {

// A register tile is 4 pixels x 16 outputs, so that the weights of the outputs fit into the first
// cache, and serves several times in a row.
constexpr int tile_pixels = 16;
constexpr int outputs_at_once = 16;

#if defined(__AVXVNNI__)
constexpr bool any_bytes = true;
#else
constexpr bool any_bytes = false;
#endif

// Of one group of outputs and one word.
constexpr std::size_t packed_bytes(bool wide) { return (wide ? 4 : 8) * output_group; }

// Of 4 activations in 16 bits, those with even numbers meet their weights first, then the others.
void pack_weights(const WeightPacking& p) {
    const int per_word = p.wide ? 2 : 4, pairs = per_word / 2;
    const bool bytes = !p.wide && (p.pairs_fit || any_bytes);
    for (int first = 0; first < p.outputs; first += outputs_at_once) {
        const std::size_t group = static_cast<std::size_t>(first / output_group) * p.words;
        std::uint8_t* to = p.packed + group * packed_bytes(p.wide);
        if (first % output_group)
            to += static_cast<std::size_t>(p.words) * outputs_at_once * (bytes ? 4 : 4 * pairs);
        for (int word = 0; word < p.words; ++word)
            for (int pair = 0; pair < (bytes ? 1 : pairs); ++pair)
                for (int c = 0; c < outputs_at_once; ++c) {
                    const std::size_t row = static_cast<std::size_t>(first + c) * p.words + word;
                    const std::int16_t* weight = p.weights + row * per_word + pair;
                    if (bytes) {
                        for (int k = 0; k < 4; ++k) *to++ = static_cast<std::uint8_t>(weight[k]);
                    } else {
                        const std::int16_t two[2] = {weight[0], weight[pairs]};
                        std::memcpy(to, two, 4);
                        to += 4;
                    }
                }
    }
}

enum class Products { wide, pairs, bytes };

HAMFLOW_INLINE __m256i add_products(Products products, __m256i sum, __m256i activations,
                                    __m256i weights) {
#if defined(__AVXVNNI__)
    return products == Products::bytes ? _mm256_dpbusd_avx_epi32(sum, activations, weights)
                                       : _mm256_dpwssd_avx_epi32(sum, activations, weights);
#else
    const __m256i ones = _mm256_set1_epi16(1);
    return _mm256_add_epi32(
        sum, products == Products::bytes
                 ? _mm256_madd_epi16(_mm256_maddubs_epi16(activations, weights), ones)
                 : _mm256_madd_epi16(activations, weights));
#endif
}

// Not inlined: what the caller keeps in registers would push the sums out of theirs.
template <Products products, int pixels>
HAMFLOW_NOINLINE const std::uint8_t* dot_registers(const ConvolutionRow& r, int x,
                                                   const std::uint8_t* weights,
                                                   const std::int32_t* first, std::int32_t* sums) {
    constexpr int vectors = outputs_at_once / 8;
    __m256i sum[pixels][vectors];
    unroll<pixels>([&](auto p) HAMFLOW_INLINE_LAMBDA {
        unroll<vectors>([&](auto v) HAMFLOW_INLINE_LAMBDA {
            sum[p][v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(first + 8 * v));
        });
    });
    const __m256i even = _mm256_set1_epi32(0x00FF00FF);
    const std::ptrdiff_t pitch = r.pitch;
    // One product at a time: GCC 12 would collect them, and spill.
    const auto add = [&](const __m256i* a) HAMFLOW_INLINE_LAMBDA {
        const auto* w = reinterpret_cast<const __m256i*>(weights);
        const __m256i weight[vectors] = {_mm256_loadu_si256(w), _mm256_loadu_si256(w + 1)};
        unroll<pixels>([&](auto p) HAMFLOW_INLINE_LAMBDA {
            unroll<vectors>([&](auto v) HAMFLOW_INLINE_LAMBDA {
                sum[p][v] = add_products(products, sum[p][v], a[p], weight[v]);
                asm volatile("" : "+x"(sum[p][v]));
            });
        });
        weights += 4 * outputs_at_once;
    };
    for (int run = 0; run < r.run_count; ++run) {
        const std::uint8_t* a = r.runs[run] + x * pitch;
        for (int word = 0; word < r.run_words; ++word, a += 4) {
            __m256i part[pixels];
            const auto four = [&](int p) HAMFLOW_INLINE_LAMBDA {
                std::int32_t activations;
                std::memcpy(&activations, a + p * pitch, 4);
                return _mm256_set1_epi32(activations);
            };
            unroll<pixels>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                part[p] = products == Products::pairs ? _mm256_and_si256(four(p), even) : four(p);
            });
            add(part);
            if constexpr (products == Products::pairs) {
                unroll<pixels>([&](auto p) HAMFLOW_INLINE_LAMBDA {
                    part[p] = _mm256_srli_epi16(four(p), 8);
                });
                add(part);
            }
        }
    }
    unroll<pixels>([&](auto p) HAMFLOW_INLINE_LAMBDA {
        unroll<vectors>([&](auto v) HAMFLOW_INLINE_LAMBDA {
            auto* to = reinterpret_cast<__m256i*>(sums + p * output_group + 8 * v);
            _mm256_storeu_si256(to, sum[p][v]);
        });
    });
    return weights;
}

template <Products products, int pixels>
HAMFLOW_INLINE void dot_pixels(const ConvolutionRow& r, int x, const std::uint8_t* weights,
                               const std::int32_t* first, std::int32_t* sums) {
    constexpr int at_once = pixels < 4 ? pixels : 4;
    for (int c = 0; c < output_group; c += outputs_at_once) {
        const std::uint8_t* next = weights;
        for (int p = 0; p < pixels; p += at_once)
            next = dot_registers<products, at_once>(r, x + p, weights, first + c,
                                                    sums + p * output_group + c);
        weights = next;
    }
}

template <bool wide, int pixels>
HAMFLOW_INLINE void dot_tile(const ConvolutionRow& r, int x, const std::uint8_t* weights,
                             const std::int32_t* first, std::int32_t* sums) {
    if (wide)
        dot_pixels<Products::wide, pixels>(r, x, weights, first, sums);
    else if (r.pairs_fit || any_bytes)
        dot_pixels<Products::bytes, pixels>(r, x, weights, first, sums);
    else
        dot_pixels<Products::pairs, pixels>(r, x, weights, first, sums);
}

// To whole numbers of 32767 at most; the negative ones may be smaller.
HAMFLOW_INLINE __m256i scaled(const std::int32_t* sums, const float* scale) {
    const __m256i sum = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums));
    const __m256 y = _mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(scale));
    return _mm256_cvtps_epi32(_mm256_min_ps(y, _mm256_set1_ps(32767)));
}

// tanh of 16 of them, in the order 0-3, 8-11, 4-7, 12-15, which packing makes.
HAMFLOW_INLINE __m256i tanh16(const std::int32_t* sums, const float* scale) {
    __m256i z = _mm256_packs_epi32(scaled(sums, scale), scaled(sums + 8, scale + 8));
    z = _mm256_max_epi16(z, _mm256_set1_epi16(-32767));
    const __m256i square = _mm256_mulhrs_epi16(z, z);
    __m256i sum = _mm256_set1_epi16(tanh_coefficients[0]);
    for (int k = 1; k < 6; ++k)
        sum = _mm256_add_epi16(_mm256_mulhrs_epi16(sum, square),
                               _mm256_set1_epi16(tanh_coefficients[k]));
    sum = _mm256_mulhrs_epi16(_mm256_mulhrs_epi16(sum, z), _mm256_set1_epi16(127 * 32));
    return _mm256_add_epi16(sum, _mm256_set1_epi16(128));
}

HAMFLOW_INLINE void tanh_bytes(const std::int32_t* sums, const float* scale, std::uint8_t* out) {
    const __m256i packed = _mm256_packus_epi16(tanh16(sums, scale), tanh16(sums + 16, scale + 16));
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                        _mm256_permutevar8x32_epi32(packed, order));
}

HAMFLOW_INLINE std::uint32_t sign_bits(const std::int32_t* sums) {
    std::uint32_t bits = 0;
    for (int v = 0; v < 4; ++v) {
        const __m256i x = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(sums + 8 * v));
        const __m256i positive = _mm256_cmpgt_epi32(x, _mm256_setzero_si256());
        bits |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(positive)))
                << 8 * v;
    }
    return bits;
}

}  // namespace
}  // namespace hamflow
