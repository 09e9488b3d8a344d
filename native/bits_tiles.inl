// The loop over the 4D cost (eq. 1 of the paper, quantized) of packed bits that
// min_projection.inl and messages.inl share. Each entry is evaluated once and none is stored. The
// lanes of a vector are consecutive labels u.
//
// Included by kernels_<level>.cpp inside that level's namespace, which supplies `Bits<words>` (8-bit
// distances) and `BitsF32<words>` (the variant that is fastest for float messages) for descriptors
// of one word or two.
//
// The order of the loops: a strip of image rows (its planes fit the cache budget) -> a pair of
// rows (y, y + 1), which share targets -> a tile of pixel columns -> the target rows -> the
// columns of the tile -> blocks of labels. A target row is thus loaded once per tile, not once
// per pixel, and everything the innermost loops touch stays in the first-level cache.

// Bit planes of the target rows [first, first + rows). A row is a sequence of blocks of
// `B::lanes` columns, and a block holds, plane by plane, its columns and those of the next block:
// wherever a vector of labels begins, it lies within one block, at offsets from there that the
// compiler knows. On AVX2 no load crosses a cache line then (such loads run at half speed and
// bound the kernel), and the planes need not be copied together for each tile.
template <class B>
struct TargetPlanes {
    int first = 0;
    std::size_t row_bytes = 0;
    Buffer<std::uint8_t> data;

    // A vector begins less than `lanes` columns before the image, so there is one block more; and
    // it ends less than that after it, within the doubled columns of the last block.
    static int blocks(int w) { return (w + B::lanes - 1) / B::lanes + 1; }
    static std::size_t row_bytes_for(int w) {
        return static_cast<std::size_t>(blocks(w)) * B::vector_stride;
    }

    void build(const BitsPair& p, int first_row, int rows) {
        first = first_row;
        row_bytes = row_bytes_for(p.to_w);
        data = Buffer<std::uint8_t>(row_bytes * rows);
        const std::size_t stride = static_cast<std::size_t>(blocks(p.to_w) + 1) * B::lanes * B::elem;
        parallel_for(rows, [&](int r) {
            Buffer<std::uint64_t> row(static_cast<std::size_t>(p.to_w) * p.words);
            for (int x = 0; x < p.to_w; ++x)
                std::copy_n(p.to(p.pixel(x, first + r)), p.words, row.data() + x * p.words);
            Buffer<std::uint8_t> flat(B::planes * stride, 0);
            B::build_planes(row.data(), p.to_w, flat.data() + B::lanes * B::elem, stride);
            std::uint8_t* out = data.data() + row_bytes * r;
            for (int block = 0; block < blocks(p.to_w); ++block)
                for (int plane = 0; plane < B::planes; ++plane, out += B::plane_stride)
                    std::memcpy(out, flat.data() + plane * stride + block * B::lanes * B::elem,
                                B::plane_stride);
        });
    }

    const std::uint8_t* row(int y) const { return data.data() + row_bytes * (y - first); }

    // Offset into a row of the vector of labels that begins at column x; x may be far outside,
    // as long as the vectors that are really looked at are not.
    static std::ptrdiff_t offset(long long x) {
        const long long from = x + B::lanes;
        const long long block = from >= 0 ? from / B::lanes : -((-from + B::lanes - 1) / B::lanes);
        return static_cast<std::ptrdiff_t>(block * B::vector_stride +
                                           (from - block * B::lanes) * B::elem);
    }
};

// body(words) with the number of words of a descriptor as a constant.
template <class Body>
HAMFLOW_INLINE void with_words(const BitsPair& p, const Body& body) {
    if (p.words == 1)
        body(std::integral_constant<int, 1>());
    else
        body(std::integral_constant<int, 2>());
}

// The planes of one strip may take this much memory (more only when a window alone does).
constexpr std::size_t plane_budget = std::size_t(24) << 20;

// A tile: the pixels (x0 + i, y + p), i < n, p in {0, 1}; p = 1 may not exist (last row).
template <class B>
struct Tile {
    static constexpr int columns = B::columns;
    int x0, y, n;
    bool has_second;
    LabelRange u[columns];   // labels whose target column is inside the image
    LabelRange v[2];         // labels whose target row is inside the image
    int j_from[columns], j_to[columns];  // the vectors of labels that hold u[i]
    int j_begin, j_end;      // the vectors that any column needs
    std::ptrdiff_t offset[columns];  // of column i's first vector of labels in a target row

    void set_columns(int first, const Window& win, const BitsPair& p) {
        x0 = first;
        n = std::min(columns, p.w - x0);
        j_begin = (win.du + B::lanes - 1) / B::lanes;
        j_end = 0;
        for (int i = 0; i < n; ++i) {
            u[i] = u_labels(win, x0 + i, p.to_w);
            offset[i] = TargetPlanes<B>::offset(static_cast<long long>(x0) + i + win.u0);
            j_from[i] = u[i].lo / B::lanes;
            j_to[i] = (u[i].hi + B::lanes - 1) / B::lanes;
            if (u[i].empty()) continue;
            j_begin = std::min(j_begin, j_from[i]);
            j_end = std::max(j_end, j_to[i]);
        }
    }
};

// Feeds every distance of the tile to the sink, block of labels by block of labels. A sink has
//   begin(tile);
//   Row row(i, k, first): what it keeps in registers for column i; `first`: no block came before
//   consume<P0, P1, N>(row, i, j, da, db): the vectors j .. j + N - 1 of the labels u
//   end_row(row, i); end_target_row<P0, P1>(k);
//   finish(tile)
// where k is the label v of the pixel (., y), and k - 1 that of (., y + 1); P0 and P1 say which
// of the two has that label at all.
template <class B, class Sink, bool P0, bool P1>
HAMFLOW_INLINE void feed_target_row(const Tile<B>& tile, const typename B::Pair* pairs,
                                    const std::uint8_t* targets, std::size_t row_bytes, int k,
                                    Sink& sink) {
    static_assert(B::block <= 4, "what is left of a block is 1, 2 or 3 vectors");
    bool first_block = true;
    for (int j0 = tile.j_begin; j0 < tile.j_end; j0 += B::block) {
        const int j1 = std::min(j0 + B::block, tile.j_end);
        // The next target row lies further on than the hardware looks: each column asks for its
        // share of the lines that this block of labels will need there.
        const std::uint8_t* next =
            targets + row_bytes + tile.offset[0] + std::ptrdiff_t(j0) * B::vector_stride;
        constexpr int lines = B::block * B::vector_stride / 64 / B::columns + 1;
        for (int i = 0; i < tile.n; ++i) {
            for (int line = 0; line < lines; ++line) prefetch(next + (i * lines + line) * 64);
            const int j = std::max(tile.j_from[i], j0);
            const int vectors = std::min(tile.j_to[i], j1) - j;
            // The sink's state lives within one branch, and so in registers.
            const auto step = [&](auto count) HAMFLOW_INLINE_LAMBDA {
                constexpr int n = decltype(count)::value;
                auto state = sink.row(i, k, first_block);
                if constexpr (n > 0) {
                    typename B::D da[n], db[n];
                    B::template distances<n>(
                        pairs[i], targets + tile.offset[i] + std::ptrdiff_t(j) * B::vector_stride,
                        da, db);
                    sink.template consume<P0, P1, n>(state, i, j, da, db);
                }
                sink.end_row(state, i);
            };
            if (vectors == B::block)
                step(std::integral_constant<int, B::block>());
            else if (vectors == 1)
                step(std::integral_constant<int, 1>());
            else if (B::block > 2 && vectors == 2)
                step(std::integral_constant<int, 2>());
            else if (B::block > 3 && vectors == 3)
                step(std::integral_constant<int, 3>());
            else
                step(std::integral_constant<int, 0>());
        }
        first_block = false;
    }
    sink.template end_target_row<P0, P1>(k);
}

template <class B, class Sink>
void feed_tile(const BitsPair& p, const Window& win, const Tile<B>& tile,
               const TargetPlanes<B>& planes, typename B::Pair* pairs, Sink& sink) {
    for (int i = 0; i < tile.n; ++i)
        pairs[i].set(p.from(p.pixel(tile.x0 + i, tile.y)),
                     p.from(p.pixel(tile.x0 + i, tile.y + tile.has_second)));
    sink.begin(tile);
    for (int k = 0; k <= win.dv; ++k) {
        const bool first = tile.v[0].contains(k);
        const bool second = tile.has_second && k > 0 && tile.v[1].contains(k - 1);
        if (!first && !second) continue;
        const std::uint8_t* targets = planes.row(tile.y + win.v0 + k);
        if (first && second)
            feed_target_row<B, Sink, true, true>(tile, pairs, targets, planes.row_bytes, k, sink);
        else if (first)
            feed_target_row<B, Sink, true, false>(tile, pairs, targets, planes.row_bytes, k, sink);
        else
            feed_target_row<B, Sink, false, true>(tile, pairs, targets, planes.row_bytes, k, sink);
    }
    sink.finish(tile);
}

// Runs a sink (made by `make_sink()`, one for each pair of rows) over the whole image.
template <class B, class MakeSink>
void for_each_tile(const BitsPair& p, const Window& win, const MakeSink& make_sink) {
    const std::size_t row_bytes = TargetPlanes<B>::row_bytes_for(p.to_w);
    const long long fit = static_cast<long long>(plane_budget / row_bytes);
    const long long spare = fit - win.dv;
    const int strip = static_cast<int>(
        fit >= p.h ? p.h : std::min<long long>(p.h, std::max<long long>(16, spare / 2 * 2)));
    TargetPlanes<B> planes;
    for (int y0 = 0; y0 < p.h; y0 += strip) {
        const int y1 = std::min(p.h, y0 + strip);
        const long long top = static_cast<long long>(y0) + win.v0;
        const long long bottom = static_cast<long long>(y1) + win.v0 + win.dv - 1;
        const int first = static_cast<int>(std::clamp<long long>(top, 0, p.to_h));
        const int last = static_cast<int>(std::clamp<long long>(bottom, 0, p.to_h));
        planes.build(p, first, std::max(0, last - first));
        parallel_for((y1 - y0 + 1) / 2, [&](int pair_index) {
            auto sink = make_sink();
            Buffer<typename B::Pair> pairs(Tile<B>::columns);
            Tile<B> tile;
            tile.y = y0 + 2 * pair_index;
            tile.has_second = tile.y + 1 < y1;
            tile.v[0] = v_labels(win, tile.y, p.to_h);
            tile.v[1] = v_labels(win, tile.y + 1, p.to_h);
            for (int x0 = 0; x0 < p.w; x0 += tile.columns) {
                tile.set_columns(x0, win, p);
                feed_tile<B>(p, win, tile, planes, pairs.data(), sink);
            }
        });
    }
}

// Lanes of a pixel's vectors that are no valid label must never win. Masks are rebuilt for each
// tile; pixels whose vectors are all valid skip them.
template <class B>
struct EdgeMasks {
    static constexpr int columns = Tile<B>::columns;
    int padded;
    bool edge[columns];
    Buffer<std::uint8_t> mask;

    explicit EdgeMasks(int padded_labels) : padded(padded_labels), mask(columns * padded_labels) {}

    void begin(const Tile<B>& tile) {
        for (int i = 0; i < tile.n; ++i) {
            const LabelRange u = tile.u[i];
            edge[i] = u.lo % B::lanes != 0 || u.hi % B::lanes != 0;
            if (!edge[i]) continue;
            std::uint8_t* m = mask.data() + i * padded;
            std::memset(m, 0xff, padded);
            std::memset(m + u.lo, 0, u.hi - u.lo);
        }
    }

    // 0xff is above every distance.
    template <int N>
    HAMFLOW_INLINE void apply(int i, int j, typename B::V* d) const {
        const std::uint8_t* m = mask.data() + i * padded + j * B::lanes;
        unroll<N>([&](auto q) HAMFLOW_INLINE_LAMBDA {
            d[q] = B::bit_or(d[q], B::load(m + q * B::lanes));
        });
    }
};

// Writes [rows][columns] as [columns][rows] for the n first columns, 8 x 8 bytes at a time in
// registers: byte by byte took 8 % of the QQ kernel.
HAMFLOW_INLINE void transpose_columns(const std::uint8_t* in, int columns, int rows, int n,
                              std::uint8_t* out, std::ptrdiff_t out_stride) {
    const auto swap = [](std::uint64_t& a, std::uint64_t& b, int shift, std::uint64_t mask) {
        const std::uint64_t t = ((a >> shift) ^ b) & mask;
        a ^= t << shift;
        b ^= t;
    };
    const int rows8 = rows / 8 * 8, n8 = n / 8 * 8;
    for (int k = 0; k < rows8; k += 8) {
        for (int i = 0; i < n8; i += 8) {
            std::uint64_t r[8];
            for (int q = 0; q < 8; ++q)
                std::memcpy(&r[q], in + static_cast<std::size_t>(k + q) * columns + i, 8);
            for (int q = 0; q < 4; ++q) swap(r[q], r[q + 4], 32, 0x00000000ffffffffULL);
            for (int q : {0, 1, 4, 5}) swap(r[q], r[q + 2], 16, 0x0000ffff0000ffffULL);
            for (int q : {0, 2, 4, 6}) swap(r[q], r[q + 1], 8, 0x00ff00ff00ff00ffULL);
            for (int q = 0; q < 8; ++q) std::memcpy(out + (i + q) * out_stride + k, &r[q], 8);
        }
        for (int i = n8; i < n; ++i)
            for (int q = k; q < k + 8; ++q)
                out[i * out_stride + q] = in[static_cast<std::size_t>(q) * columns + i];
    }
    for (int i = 0; i < n; ++i)
        for (int q = rows8; q < rows; ++q)
            out[i * out_stride + q] = in[static_cast<std::size_t>(q) * columns + i];
}
