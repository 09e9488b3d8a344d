// Fields whose pixels are stored by the colors of a chessboard: in each row those with an even
// x + y stand side by side, and so do the others. All neighbors of a pixel have the other color,
// so that a loop over one color reads and writes contiguous vectors.
//
// The pixel x of a row is number k = x / 2 of its color; `shift` = x - 2 k is the same for a whole
// row of one color. The neighbors at x - 1 and x + 1 have the numbers k + shift - 1 and k + shift,
// those above and below have the number k. There is a row before the first and after the last one,
// and a place before and after each row: `clear_margins` makes them zero.

constexpr int lanes = 16;  // rows of a color begin and end at multiples of this many numbers

struct Board {
    int h, w;
    std::size_t stride;  // numbers per row of one color

    Board(int height, int width)
        : h(height), w(width),
          stride(static_cast<std::size_t>(round_up((width + 1) / 2 + 2, lanes))) {}

    int shift(int y, int color) const { return (y + color) & 1; }
    int count(int y, int color) const { return (w - shift(y, color) + 1) / 2; }
    int color(int y, int x) const { return (y + x) & 1; }
};

struct Field {
    float* data;  // the first row of the first color
    std::size_t stride, plane;

    float* row(int y, int color) const {
        return data + color * static_cast<std::ptrdiff_t>(plane) +
               y * static_cast<std::ptrdiff_t>(stride);
    }
};

// Several fields, undefined at first; or a single row of each, which then stands for all of them.
class Fields {
   public:
    Fields(const Board& board, int count, bool single = false)
        : count_(count), first_(single ? 0 : board.stride), stride_(single ? 0 : board.stride),
          plane_(board.stride * static_cast<std::size_t>(single ? 1 : board.h + 2)),
          numbers_(count * 2 * plane_ + 2 * lanes), begin_(numbers_.data() + lanes) {}

    Field operator[](int k) const {
        return {begin_ + 2 * k * plane_ + first_, stride_, plane_};
    }

    // What lies beside a row, and above the first or below the last one.
    void clear_margins(const Board& board, int y) const {
        for (int k = 0; k < count_; ++k)
            for (int color = 0; color < 2; ++color) {
                const Field field = (*this)[k];
                const int count = board.count(y, color);
                std::fill_n(field.row(y, color) + count, stride_ - count, 0.0f);
                if (y == 0) std::fill_n(field.row(-1, color), stride_, 0.0f);
                if (y + 1 == board.h) std::fill_n(field.row(board.h, color), stride_, 0.0f);
            }
    }

   private:
    int count_;
    std::size_t first_, stride_, plane_;
    Buffer<float> numbers_;
    float* begin_;
};

// From a row in its natural order, `step` numbers apart, and back.
void split_row(const Board& board, int y, const float* __restrict from, int step,
               const Field& field) {
    for (int parity = 0; parity < 2; ++parity) {
        const int color = board.color(y, parity), count = board.count(y, color);
        float* __restrict to = field.row(y, color);
        if (step == 1) {
            for (int k = 0; k < count; ++k) to[k] = from[2 * k + parity];
        } else {
            for (int k = 0; k < count; ++k) to[k] = from[(2 * k + parity) * step];
        }
    }
}

// RowBlocks of rows for the threads. Results do not depend on them; many small ones balance the load,
// few large ones save what is computed at their borders.
struct RowBlocks {
    int h, count;

    RowBlocks(int height, int least)
        : h(height), count(get_num_threads() == 1
                               ? 1
                               : std::max(1, std::min(4 * get_num_threads(), height / least))) {}
    int begin(int block) const {
        return static_cast<int>(static_cast<std::int64_t>(h) * block / count);
    }
};

template <class Body>
void for_blocks(const RowBlocks& blocks, const Body& body) {
    parallel_for(blocks.count, [&](int b) { body(blocks.begin(b), blocks.begin(b + 1)); });
}
