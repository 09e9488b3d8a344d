// The loop over the 4D cost (eq. 1 of the paper, quantized) of packed bits with a pixel in each lane:
// tiles of B::lanes pixels of two rows. Whatever the window's size, no lane is empty, the pixels' own
// bits stay in registers for a whole row of targets, and minima over labels are minima of vectors.
// For levels that count the bits of a vector of bytes with one instruction; where tables of a pixel
// are faster, the lanes have to be labels (bits_tiles.inl).

// What the tiles of min_projection_abreast.inl and messages_abreast.inl share. `Tile` has
//   begin(), scan<P0, P1>(row, k), finish(r)
// for the tile at x0_; a scan sees the target row of the label k of the first row, k - 1 of the
// second; P0 and P1 say which of the two has that label at all.
template <class B, class Tile>
class PixelTile {
   public:
    static constexpr int lanes = B::lanes;

    PixelTile(const BitsPair& p, const Window& win)
        : p_(p), win_(win), own_(std::size_t(2) * B::planes * stride(p.w)),
          row_(std::size_t(p.w) * p.words) {}

    // Planes of one row: a vector may begin up to `lanes` columns before it, and end as far behind.
    static std::size_t stride(int w) { return std::size_t(round_up(w, lanes)) + 2 * lanes; }
    static void build_planes(const BitsPair& p, const std::uint64_t* field, int y,
                             std::uint64_t* row, std::uint8_t* out) {
        for (int x = 0; x < p.w; ++x)
            std::copy_n(field + p.pixel(x, y) * p.words, p.words, row + std::size_t(x) * p.words);
        std::memset(out, 0, B::planes * stride(p.w));
        B::build_planes(row, p.w, out + lanes, stride(p.w));
    }

    // The rows y and, if there is one, y + 1.
    void run(int y, const std::uint8_t* targets) {
        y_ = y;
        rows_ = std::min(2, p_.h - y);
        for (int r = 0; r < rows_; ++r) {
            build_planes(p_, p_.bits0, y + r, row_.data(),
                         own_.data() + r * B::planes * stride(p_.w));
            v_[r] = v_labels(win_, y + r, p_.to_h);
        }
        if (rows_ == 1) v_[1] = {0, 0};
        // The last tile overlaps the one before.
        for (int x0 = 0; x0 < p_.w; x0 += lanes) tile(std::min(x0, p_.w - lanes), targets);
    }

   protected:
    // A row's own bytes of one plane, and the target row's from label lo_ on.
    HAMFLOW_INLINE typename B::V own(int r, int plane) const {
        return B::loadu(own_.data() + (r * B::planes + plane) * stride(p_.w) + lanes + x0_);
    }
    HAMFLOW_INLINE const std::uint8_t* first_target(const std::uint8_t* row) const {
        return row + lanes + x0_ + win_.u0 + lo_;
    }
    // The pixels of a tile whose target column with label u is inside: [from, to).
    struct Columns { std::int16_t from, to; };
    HAMFLOW_INLINE Columns columns_inside(int u) const {
        const long long start = static_cast<long long>(x0_) + win_.u0 + u;
        const auto bound = [](long long x) {
            return static_cast<std::int16_t>(std::clamp<long long>(x, -1, lanes));
        };
        return {bound(-start), bound(p_.w - start)};
    }

    BitsPair p_;
    Window win_;
    int y_ = 0, rows_ = 0, x0_ = 0;
    int lo_ = 0, hi_ = 0;    // labels u of which at least one pixel has a target in the image
    bool inside_ = false;    // all labels u of all pixels have one
    LabelRange v_[2] = {};

   private:
    void tile(int x0, const std::uint8_t* targets) {
        x0_ = x0;
        lo_ = win_.du;
        hi_ = 0;
        inside_ = true;
        for (int l = 0; l < lanes; ++l) {
            const LabelRange u = u_labels(win_, x0 + l, p_.w);
            inside_ = inside_ && u.covers(win_.du);
            if (u.empty()) continue;
            lo_ = std::min(lo_, u.lo);
            hi_ = std::max(hi_, u.hi);
        }
        Tile& self = static_cast<Tile&>(*this);
        self.begin();
        for (int k = 0; k <= win_.dv; ++k) {
            const bool a = v_[0].contains(k), b = k > 0 && v_[1].contains(k - 1);
            if (!a && !b) continue;
            const std::uint8_t* row =
                targets + std::size_t(y_ + win_.v0 + k) * B::planes * stride(p_.w);
            if (a && b)
                self.template scan<true, true>(row, k);
            else if (a)
                self.template scan<true, false>(row, k);
            else
                self.template scan<false, true>(row, k);
        }
        for (int r = 0; r < rows_; ++r) self.finish(r);
    }

    Buffer<std::uint8_t> own_;  // planes of both rows
    Buffer<std::uint64_t> row_;
};

// Runs tiles (made by `make_tile()`) over the whole image, which is at least
// as wide as one of them.
template <class Tile, class MakeTile>
void for_each_pixel_tile(const BitsPair& p, int planes, const MakeTile& make_tile) {
    const std::size_t row_bytes = planes * Tile::stride(p.w);
    Buffer<std::uint8_t> targets(row_bytes * p.to_h);
    parallel_for(p.to_h, [&](int y) {
        Buffer<std::uint64_t> row(std::size_t(p.w) * p.words);
        Tile::build_planes(p, p.bits1, y, row.data(), targets.data() + row_bytes * y);
    });
    const int pairs = (p.h + 1) / 2;
    parallel_for_with(make_tile, pairs, [&](Tile& tile, int pair) {
        tile.run(2 * pair, targets.data());
    });
}
