#include "network.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "network_planes.hpp"
#include "simd/levels.hpp"

namespace hamflow {

IntegerLayer::IntegerLayer(std::vector<std::int16_t> weights, std::vector<std::int32_t> first,
                           std::vector<float> scale, int runs, bool wide)
    : weights_(std::move(weights)), first_(std::move(first)), scale_(std::move(scale)),
      runs_(runs), wide_(wide), pairs_fit_(!wide) {
    for (std::size_t i = 0; pairs_fit_ && i < weights_.size(); i += 2) {
        const int a = weights_[i], b = weights_[i + 1];
        const int high = std::max(a, 0) + std::max(b, 0), low = std::min(a, 0) + std::min(b, 0);
        pairs_fit_ = 255 * high <= 32767 && 255 * low >= -32768;
    }
}

int IntegerLayer::run_words() const {
    return static_cast<int>(weights_.size() / first_.size()) / runs_ / (wide_ ? 2 : 4);
}

IntegerLayer::Packed IntegerLayer::packed() const {
    const Convolutions& ways = active_convolutions();
    std::lock_guard<std::mutex> lock(mutex_);
    if (packed_for_ != &ways) {
        auto packed = std::make_shared<std::vector<std::uint8_t>>(2 * weights_.size());
        ways.pack_weights({weights_.data(), outputs(), runs_ * run_words(), wide_, pairs_fit_,
                           packed->data()});
        packed_ = std::move(packed);
        packed_for_ = &ways;
    }
    return packed_;
}

ConvolutionRow IntegerLayer::row(const Packed& weights) const {
    ConvolutionRow r{};
    r.run_count = runs_;
    r.run_words = run_words();
    r.outputs = outputs();
    r.wide = wide_;
    r.pairs_fit = pairs_fit_;
    r.weights = weights->data();
    r.first = first_.data();
    r.scale = scale_.data();
    return r;
}

namespace {

// The image from -2 to 2, continued beyond its border by its outermost pixels.
Plane normalized(const ColorImage& image, int border, int threads) {
    Plane plane(image.h, image.w, 2 * input_channels, border);
    parallel_rows(image.h + 2 * border, threads, [&](int begin, int end) {
        for (int y = begin - border; y < end - border; ++y) {
            const int row = std::clamp(y, 0, image.h - 1);
            const float* from = image.pixels + static_cast<std::size_t>(row) * image.w * 3;
            std::int16_t* to = shorts(plane.at(y, 0));
            for (int x = 0; x < image.w; ++x) {
                for (int c = 0; c < 3; ++c)
                    to[4 * x + c] = whole((from[3 * x + c] - 0.5f) * (4 * units_of_color));
                to[4 * x + 3] = 0;
            }
            for (int x = 1; x <= border; ++x) {
                std::memcpy(plane.at(y, -x), plane.at(y, 0), plane.bytes());
                std::memcpy(plane.at(y, image.w - 1 + x), plane.at(y, image.w - 1), plane.bytes());
            }
        }
    });
    return plane;
}

// Means of 3x3 pixels; the border shrinks by one.
Plane blurred(const Plane& sharp, int threads) {
    const int border = sharp.border() - 1;
    Plane plane(sharp.h(), sharp.w(), sharp.bytes(), border);
    parallel_rows(sharp.h() + 2 * border, threads, [&](int begin, int end) {
        for (int y = begin - border; y < end - border; ++y)
            for (int x = -border; x < sharp.w() + border; ++x)
                for (int c = 0; c < input_channels; ++c) {
                    int sum = 0;
                    for (int dy = -1; dy <= 1; ++dy)
                        for (int dx = -1; dx <= 1; ++dx) {
                            std::int16_t value;
                            std::memcpy(&value, sharp.at(y + dy, x + dx) + 2 * c, 2);
                            sum += value;
                        }
                    shorts(plane.at(y, x))[c] = whole(static_cast<float>(sum) / 9);
                }
    });
    return plane;
}

class Chain {
   public:
    Chain(const std::vector<const IntegerLayer*>& layers, const std::vector<InputRun>& input,
          const ColorImage& image, const NetworkOutput& out)
        : layers_(layers), input_(input), image_(image), out_(out), beyond_(layers.size()) {
        for (const IntegerLayer* layer : layers) packed_.push_back(layer->packed());
        // Rows and columns that later layers need beyond those of the image.
        for (std::size_t l = layers.size() - 1; l > 0; --l)
            beyond_[l - 1] = beyond_[l] + layers[l]->runs() - 1;
    }

    void run() {
        int border = 0;
        bool any_blurred = false;
        const int words = layers_[0]->run_words();
        const int run_pixels = (words * 4 + 2 * input_channels - 1) / (2 * input_channels);
        for (const InputRun& run : input_) {
            border = std::max({border, -run.dy, -run.dx, run.dy + beyond_[0],
                               run.dx + run_pixels - 1 + beyond_[0]});
            any_blurred |= run.blurred;
        }
        const Plane sharp = normalized(image_, border + any_blurred, out_.threads);
        const Plane soft = any_blurred ? blurred(sharp, out_.threads) : Plane(0, 0, 1, 0);

        const int workers = out_.threads > 0 ? out_.threads : get_num_threads();
        const auto [bands, strips] = plan(image_.h, image_.w, workers == 1 ? 1 : 2 * workers);
        const int tiles = bands * strips;
        const int most = out_.threads > 0 ? std::min(out_.threads, tiles) : tiles;
        parallel_for(most, [&, bands = bands, strips = strips](int first) {
            for (int tile = first; tile < tiles; tile += most)
                strip(sharp, soft, cut(image_.h, bands, tile / strips),
                      cut(image_.w, strips, tile % strips));
        });
    }

   private:
    struct Span {
        int begin, end;
    };

    // How many bands of rows and strips of columns: at least `tiles` in all, if there is room, such
    // that little is computed twice where they meet.
    static std::pair<int, int> plan(int h, int w, int tiles) {
        // The rows of a strip that are still needed stay in the second cache.
        constexpr int widest = 256, least = 32;
        const int fewest = (w + widest - 1) / widest;
        std::pair<int, int> best{1, fewest};
        long long least_cost = -1;
        for (int strips = fewest; strips <= std::max(fewest, w / least); ++strips) {
            const int bands = std::clamp((tiles + strips - 1) / strips, 1, std::max(1, h / least));
            const long long cost = static_cast<long long>(strips) * h +
                                   static_cast<long long>(bands) * w +
                                   (bands * strips < tiles ? 1LL << 40 : 0);
            if (least_cost >= 0 && cost >= least_cost) continue;
            least_cost = cost;
            best = {bands, strips};
        }
        return best;
    }
    static Span cut(int size, int parts, int part) {
        const auto at = [&](int k) {
            return static_cast<int>(static_cast<long long>(size) * k / parts);
        };
        return {at(part), at(part + 1)};
    }

    // Each layer computes a row as soon as the layer before has the rows that it reads, and keeps
    // its last two rows.
    void strip(const Plane& sharp, const Plane& soft, Span rows, Span columns) const {
        const int count = static_cast<int>(layers_.size());
        std::vector<Buffer<std::uint8_t>> rings;
        for (int l = 0; l + 1 < count; ++l)
            rings.emplace_back(2 * ring_row(l, columns));
        std::vector<const std::uint8_t*> runs(std::max<std::size_t>(input_.size(), 2));
        for (int y = rows.begin; y < rows.end + beyond_[0]; ++y)
            for (int l = 0; l < count; ++l) {
                // How far this layer is behind the first one.
                const int row = y - (beyond_[0] - beyond_[l]);
                if (row < rows.begin) break;
                ConvolutionRow r = layers_[l]->row(packed_[l]);
                r.runs = runs.data();
                r.pixels = columns.end - columns.begin + beyond_[l];
                if (l == 0) {
                    for (std::size_t i = 0; i < input_.size(); ++i) {
                        const Plane& from = input_[i].blurred ? soft : sharp;
                        runs[i] = from.at(row + input_[i].dy, columns.begin + input_[i].dx);
                    }
                    r.pitch = 2 * input_channels;
                } else {
                    for (int i = 0; i < r.run_count; ++i)
                        runs[i] = ring_at(rings, l - 1, columns, row + i);
                    r.pitch = layers_[l - 1]->outputs();
                }
                if (l + 1 < count) {
                    r.finish = Finish::tanh;
                    r.out = ring_at(rings, l, columns, row);
                } else {
                    r.finish = out_.finish;
                    const std::size_t pixel =
                        static_cast<std::size_t>(row) * image_.w + columns.begin;
                    const int per_pixel = r.finish == Finish::signs ? r.outputs / output_group
                                                                    : r.outputs;
                    r.out = static_cast<std::uint8_t*>(out_.out) + 4 * pixel * per_pixel;
                }
                active_convolutions().convolve_row(r);
            }
    }
    std::size_t ring_row(int l, Span columns) const {
        return static_cast<std::size_t>(columns.end - columns.begin + beyond_[l]) *
               layers_[l]->outputs();
    }
    std::uint8_t* ring_at(std::vector<Buffer<std::uint8_t>>& rings, int l, Span columns,
                          int row) const {
        return rings[l].data() + (row & 1) * ring_row(l, columns);
    }

    const std::vector<const IntegerLayer*>& layers_;
    const std::vector<InputRun>& input_;
    const ColorImage& image_;
    const NetworkOutput& out_;
    std::vector<int> beyond_;
    std::vector<IntegerLayer::Packed> packed_;
};

}  // namespace

void run_chain(const std::vector<const IntegerLayer*>& layers, const std::vector<InputRun>& input,
               const ColorImage& image, const NetworkOutput& out) {
    Chain(layers, input, image, out).run();
}

}  // namespace hamflow
