// Neighborhoods in vectors. That of a pixel, all of 3 x 3 and every other pixel beyond, lies in a
// few of them: three in the rows of the image, the others in rows of its even or odd columns.

struct Offset {
    int y, x, slot;  // slot: where in the vectors
};

// The vectors of a neighborhood, first those of 3 x 3. Places that are no neighbors have weight 0
// and the last rank.
struct Stencil {
    Stencil(int radius, float deviation)
        : half(radius / 2), across((2 * half + 1 + width - 1) / width),
          vectors(3 + (2 * half + 1) * across), nearness(vectors * width, 0.0f),
          rank(vectors * width, most_ranks), offsets(vectors * width) {
        for (int y = -1; y <= 1; ++y)
            for (int x = -1; x <= 1; ++x)
                if (y != 0 || x != 0) offsets[count++] = {y, x, (y + 1) * width + x + 1};
        for (int y = -half; y <= half; ++y)
            for (int x = -half; x <= half; ++x)
                offsets[count++] = {2 * y, 2 * x,
                                    (3 + (y + half) * across) * width + x + half};
        const auto square = [](const Offset& o) { return o.y * o.y + o.x * o.x; };
        // From the center outwards, and of those as far away row by row.
        std::sort(offsets.data(), offsets.data() + count, [&](const Offset& a, const Offset& b) {
            if (square(a) != square(b)) return square(a) < square(b);
            return a.y != b.y ? a.y < b.y : a.x < b.x;
        });
        for (int n = 0; n < count; ++n) {
            const Offset& o = offsets[n];
            nearness[o.slot] =
                std::exp(-static_cast<float>(square(o)) / (2 * deviation * deviation));
            rank[o.slot] = n;
        }
    }

    static constexpr int most_ranks = 1 << 30;
    int half, across, vectors;
    Buffer<float> nearness;
    Buffer<int> rank;
    Buffer<Offset> offsets;  // by rank
    int count = 0;
};

// Fields with a margin: in the order of their columns, and with even and odd ones apart.
class PaddedFields {
   public:
    PaddedFields(int h, int w, int margin, int count)
        : rows(h + 2 * margin), pitch(round_up(w + 2 * margin, 2 * width)), margin_(margin),
          half_(static_cast<std::size_t>(pitch) * rows),
          numbers_(2 * half_ * count + 2 * width), begin_(numbers_.data()) {}

    float* field(int f) const { return begin_ + f * distance(); }
    std::size_t distance() const { return 2 * half_; }  // from field to field
    // From the beginning of a field to a pixel, and to where it stands among its neighbors at even
    // distances.
    std::ptrdiff_t at(int y, int x) const {
        return static_cast<std::ptrdiff_t>(y + margin_) * pitch + margin_ + x;
    }
    std::ptrdiff_t among(int y, int x) const {
        return static_cast<std::ptrdiff_t>(half_) +
               static_cast<std::ptrdiff_t>(y + margin_) * pitch + (x & 1) * (pitch / 2) +
               (margin_ + x) / 2;
    }

    // row(to): writes what lies inside of the image.
    template <class Row>
    void write_row(int f, int y, float outside, const Row& row) const {
        float* __restrict all = field(f) + at(y, -margin_);
        std::fill_n(all, pitch, outside);
        row(all + margin_);
        float* __restrict even = all + half_;
        float* __restrict odd = even + pitch / 2;
        for (int k = 0; k < pitch / 2; ++k) {
            even[k] = all[2 * k];
            odd[k] = all[2 * k + 1];
        }
    }

    int rows, pitch;

   private:
    int margin_;
    std::size_t half_;
    Buffer<float> numbers_;
    float* begin_;
};
