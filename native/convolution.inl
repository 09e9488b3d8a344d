// Convolutions of one row; what is included before brings dot_tile, tanh_bytes and sign_bits.

template <Finish finish>
HAMFLOW_INLINE void finish_pixel(const ConvolutionRow& r, int group, int x,
                                 const std::int32_t* __restrict sums) {
    constexpr int n = output_group;
    const std::size_t at = static_cast<std::size_t>(x) * r.outputs + group * n;
    const float* __restrict scale = r.scale + group * n;
    if constexpr (finish == Finish::signs) {
        const int groups = r.outputs / n;
        static_cast<std::uint32_t*>(r.out)[static_cast<std::size_t>(x) * groups + group] =
            sign_bits(sums);
    } else if constexpr (finish == Finish::values) {
        float* __restrict out = static_cast<float*>(r.out) + at;
        for (int c = 0; c < n; ++c) out[c] = static_cast<float>(sums[c]) * scale[c];
    } else if constexpr (finish == Finish::tanh) {
        std::uint8_t* __restrict out = static_cast<std::uint8_t*>(r.out) + at;
        tanh_bytes(sums, scale, out);
    } else {
        std::uint8_t* __restrict out = static_cast<std::uint8_t*>(r.out) + at;
        float y[n];
        for (int c = 0; c < n; ++c) y[c] = static_cast<float>(sums[c]) * scale[c];
        if (r.added)
            for (int c = 0; c < n; ++c) y[c] += r.added[at + c];
        for (int c = 0; c < n; ++c) y[c] = y[c] > 0.0f ? y[c] : 0.0f;
        if (r.kept)
            for (int c = 0; c < n; ++c) r.kept[at + c] = y[c];
        for (int c = 0; c < n; ++c) {
            const float level = y[c] * r.levels;
            out[c] = static_cast<std::uint8_t>(round_to_int(level < 255.0f ? level : 255.0f));
        }
    }
}

template <bool wide, Finish finish, int pixels>
void convolve_tiles(const ConvolutionRow& r, int group, int x) {
    const std::size_t words = static_cast<std::size_t>(r.run_count) * r.run_words;
    const std::uint8_t* weights = r.weights + group * words * packed_bytes(wide);
    alignas(64) std::int32_t sums[pixels * output_group];
    for (; x + pixels <= r.pixels; x += pixels) {
        dot_tile<wide, pixels>(r, x, weights, r.first + group * output_group, sums);
        for (int p = 0; p < pixels; ++p)
            finish_pixel<finish>(r, group, x + p, sums + p * output_group);
    }
    if constexpr (pixels > 1)
        if (x < r.pixels) convolve_tiles<wide, finish, pixels / 2>(r, group, x);
}

template <bool wide, Finish finish>
void convolve_groups(const ConvolutionRow& r) {
    // A group's weights stay in the first cache while the row passes.
    for (int group = 0; group < r.outputs / output_group; ++group)
        convolve_tiles<wide, finish, tile_pixels>(r, group, 0);
}

template <bool wide>
void convolve_as(const ConvolutionRow& r) {
    switch (r.finish) {
        case Finish::tanh: return convolve_groups<wide, Finish::tanh>(r);
        case Finish::relu: return convolve_groups<wide, Finish::relu>(r);
        case Finish::signs: return convolve_groups<wide, Finish::signs>(r);
        case Finish::values: return convolve_groups<wide, Finish::values>(r);
    }
}

void convolve_row(const ConvolutionRow& r) { r.wide ? convolve_as<true>(r) : convolve_as<false>(r); }
