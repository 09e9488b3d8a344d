// Sums of products for convolution.inl in plain C++, for the portable level and NEON: compilers
// multiply 16 bits by 16 and add to 32 in vectors.

constexpr int tile_pixels = 2;

// Of one group of outputs and one word.
constexpr std::size_t packed_bytes(bool wide) { return (wide ? 4 : 8) * output_group; }

void pack_weights(const WeightPacking& p) {
    const int per_word = p.wide ? 2 : 4;
    auto* to = reinterpret_cast<std::int16_t*>(p.packed);
    for (int group = 0; group < p.outputs; group += output_group)
        for (int word = 0; word < p.words; ++word)
            for (int k = 0; k < per_word; ++k)
                for (int c = 0; c < output_group; ++c) {
                    const std::size_t row = static_cast<std::size_t>(group + c) * p.words + word;
                    *to++ = p.weights[row * per_word + k];
                }
}

template <bool wide, int pixels>
HAMFLOW_INLINE void dot_tile(const ConvolutionRow& r, int x, const std::uint8_t* weights,
                             const std::int32_t* first, std::int32_t* __restrict sums) {
    constexpr int per_word = wide ? 2 : 4;
    for (int p = 0; p < pixels; ++p)
        for (int c = 0; c < output_group; ++c) sums[p * output_group + c] = first[c];
    const auto* w = reinterpret_cast<const std::int16_t*>(weights);
    for (int run = 0; run < r.run_count; ++run) {
        const std::uint8_t* a = r.runs[run] + x * r.pitch;
        for (int word = 0; word < r.run_words; ++word, a += 4)
            for (int k = 0; k < per_word; ++k, w += output_group)
                for (int p = 0; p < pixels; ++p) {
                    std::int16_t activation = a[p * r.pitch + k];
                    if (wide) std::memcpy(&activation, a + p * r.pitch + 2 * k, 2);
                    std::int32_t* __restrict sum = sums + p * output_group;
                    for (int c = 0; c < output_group; ++c)
                        sum[c] += static_cast<std::int32_t>(activation) * w[c];
                }
    }
}

HAMFLOW_INLINE std::uint32_t sign_bits(const std::int32_t* sums) {
    std::uint32_t bits = 0;
    for (int c = 0; c < output_group; ++c)
        bits |= static_cast<std::uint32_t>(sums[c] > 0) << c;
    return bits;
}

// A product of two fractions of 32768, rounded.
HAMFLOW_INLINE std::int16_t fraction_product(std::int16_t a, std::int16_t b) {
    return static_cast<std::int16_t>(((static_cast<std::int32_t>(a) * b >> 14) + 1) >> 1);
}

void tanh_bytes(const std::int32_t* sums, const float* scale, std::uint8_t* out) {
    for (int c = 0; c < output_group; ++c) {
        float y = static_cast<float>(sums[c]) * scale[c];
        y = y < 32767.0f ? y : 32767.0f;
        y = y > -32767.0f ? y : -32767.0f;
        const auto z = static_cast<std::int16_t>(round_to_int(y));
        const std::int16_t square = fraction_product(z, z);
        std::int16_t sum = tanh_coefficients[0];
        for (int k = 1; k < 6; ++k)
            sum = static_cast<std::int16_t>(fraction_product(sum, square) + tanh_coefficients[k]);
        const std::int16_t t = fraction_product(fraction_product(sum, z), 127 * 32);
        out[c] = static_cast<std::uint8_t>(t + 128);
    }
}
