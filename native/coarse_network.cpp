// The coarse descriptor network: one descriptor for each cell of 4x4 pixels.
#include <algorithm>
#include <cmath>
#include <vector>

#include "network.hpp"
#include "network_planes.hpp"
#include "simd/levels.hpp"

namespace hamflow {
namespace {

// What each pixel's gray is relative to the square around it, from -4 to 4 deviations, times .7; and
// its colors relative to the whole image. Sums are exact, in whole numbers.
class Contrasts {
   public:
    Contrasts(const ColorImage& image, int radius, int threads)
        : image_(image), radius_(radius), threads_(threads) {}

    void write(Plane& plane) {
        measure();
        parallel_rows(image_.h, threads_, [&](int begin, int end) { rows(plane, begin, end); });
    }

   private:
    // White. Sums of 25x25 squares must fit into 32 bits.
    static constexpr int gray_units = 765 * 3;  // exact for bytes

    void measure() {
        // Sums of rows, added up in order: the same for any number of threads.
        std::vector<double> sums(image_.h), squares(image_.h);
        parallel_rows(image_.h, threads_, [&](int begin, int end) {
            for (int y = begin; y < end; ++y) {
                const float* row = color(y);
                double sum[3] = {}, square[3] = {};
                for (int x = 0; x < image_.w; ++x)
                    for (int c = 0; c < 3; ++c) {
                        const double value = row[3 * x + c];
                        sum[c] += value;
                        square[c] += value * value;
                    }
                sums[y] = sum[0] + sum[1] + sum[2];
                squares[y] = square[0] + square[1] + square[2];
            }
        });
        double sum = 0, square = 0;
        for (int y = 0; y < image_.h; ++y) {
            sum += sums[y];
            square += squares[y];
        }
        const double count = 3.0 * image_.h * image_.w;
        mean_ = static_cast<float>(sum / count);
        const double variance = std::max(square / count - sum / count * (sum / count), 0.0);
        gain_ = static_cast<float>(units_of_contrast / (std::sqrt(variance) + 0.02));
    }

    const float* color(int y) const {
        return image_.pixels + static_cast<std::size_t>(y) * image_.w * 3;
    }

    void rows(Plane& plane, int begin, int end) const {
        const int w = image_.w, side = 2 * radius_ + 1;
        // Sums over the columns of the square, and of these from the left, where the image is
        // continued by its outermost pixels. Sums from the left may overflow, their differences
        // do not.
        std::vector<std::uint32_t> column(w), square(w);
        std::vector<std::uint32_t> before(w + side), square_before(w + side);
        std::vector<float> light(w), local(w);
        const auto brightness = [&](int y) {
            const float* from = color(std::clamp(y, 0, image_.h - 1));
            for (int x = 0; x < w; ++x)
                light[x] = (from[3 * x] + from[3 * x + 1] + from[3 * x + 2]) * (gray_units / 3.0f);
        };
        const auto add = [&](int y, std::uint32_t sign) {
            brightness(y);
            for (int x = 0; x < w; ++x) {
                const auto gray = static_cast<std::uint32_t>(static_cast<int>(light[x] + 0.5f));
                column[x] += sign * gray;
                square[x] += sign * gray * gray;
            }
        };
        const float norm = 1.0f / static_cast<float>(side * side), unit = 1.0f / gray_units;
        for (int y = begin - radius_; y < begin + radius_; ++y) add(y, 1);
        for (int y = begin; y < end; ++y) {
            add(y + radius_, 1);
            for (int i = 0; i + 1 < w + side; ++i) {
                const int x = std::clamp(i - radius_, 0, w - 1);
                before[i + 1] = before[i] + column[x];
                square_before[i + 1] = square_before[i] + square[x];
            }
            brightness(y);
            for (int x = 0; x < w; ++x) {
                const auto sum = static_cast<std::int32_t>(before[x + side] - before[x]);
                const auto half = static_cast<std::int32_t>(
                    (square_before[x + side] - square_before[x]) / 2);
                const float mean = static_cast<float>(sum) * norm;
                const float spread = static_cast<float>(half) * (2 * norm) - mean * mean;
                const float positive = spread > 0.0f ? spread : 0.0f;
                const float deviation = std::sqrt(positive * (unit * unit) + 1e-4f);
                const float relative = (light[x] - mean) * unit / deviation;
                const float high = relative < 4.0f ? relative : 4.0f;
                local[x] = (high > -4.0f ? high : -4.0f) * (0.7f * units_of_contrast);
            }
            const float* from = color(y);
            std::int16_t* to = shorts(plane.at(y, 0));
            for (int x = 0; x < w; ++x) {
                for (int c = 0; c < 3; ++c) to[4 * x + c] = whole((from[3 * x + c] - mean_) * gain_);
                to[4 * x + 3] = whole(local[x]);
            }
            add(y - radius_, static_cast<std::uint32_t>(-1));
        }
    }

    const ColorImage& image_;
    int radius_, threads_;
    float mean_ = 0, gain_ = 0;
};

using Stream = Buffer<float>;  // activations before they are rounded

class Coarse {
   public:
    Coarse(const CoarseLayers& layers, const NetworkOutput& out) : net_(layers), out_(out) {}

    void run(const ColorImage& image) {
        Plane input(image.h, image.w, 2 * input_channels, 2);
        input.clear_border();
        Contrasts(image, net_.local_radius, out_.threads).write(input);

        const int h = image.h, w = image.w;
        Plane half(h / 2, w / 2, net_.half->outputs(), 1);
        convolve(*net_.half, input, {2, 2, 6, 1}, half);
        Plane quarter(h / 4, w / 4, net_.quarter->outputs(), 1);
        Plane inner(h / 4, w / 4, net_.near_first->outputs(), 1);
        Plane near(h / 4, w / 4, net_.near_second->outputs(), 1);
        Stream kept(size(quarter));
        convolve(*net_.quarter, half, {2, 1, 4, 1}, quarter, nullptr, &kept);
        convolve(*net_.near_first, quarter, {1, 1, 3, 1}, inner);
        convolve(*net_.near_second, inner, {1, 1, 3, 1}, near, &kept);

        int reach = 1;
        for (const int dilation : net_.dilations) reach = std::max(reach, dilation);
        Plane far(h / 8, w / 8, net_.eighth->outputs(), reach);
        Stream deep(size(far));
        convolve(*net_.eighth, near, {2, 1, 4, 1}, far, nullptr, &deep);
        for (std::size_t block = 0; block < net_.dilations.size(); ++block) {
            const int apart = net_.dilations[block];
            const IntegerLayer& first = *net_.blocks[2 * block];
            Plane between(h / 8, w / 8, first.outputs(), 1);
            convolve(first, far, {1, apart, 3, apart}, between);
            convolve(*net_.blocks[2 * block + 1], between, {1, 1, 3, 1}, far, &deep, &deep);
        }
        Stream wide(static_cast<std::size_t>(far.h()) * far.w() * net_.far->outputs());
        pointwise(*net_.far, far, Finish::values, wide.data());
        if (kept.size() != 4 * wide.size()) kept = Stream(4 * wide.size());
        double_size(wide, far.h(), far.w(), net_.far->outputs(), kept);
        Plane both(h / 4, w / 4, net_.near_last->outputs(), 0);
        convolve(*net_.near_last, near, {1, 1, 3, 1}, both, &kept);
        pointwise(*net_.head, both, out_.finish, out_.out);
    }

   private:
    struct Kernel {
        int stride, pad, size, dilation;
    };
    static std::size_t size(const Plane& plane) {
        return static_cast<std::size_t>(plane.h()) * plane.w() * plane.bytes();
    }

    // A convolution, plus what is added, and the positive part of that.
    void convolve(const IntegerLayer& layer, const Plane& in, const Kernel& k, Plane& out,
                  const Stream* added = nullptr, Stream* kept = nullptr) {
        const int h = out.h(), w = out.w(), outputs = layer.outputs();
        out.clear_border();
        const std::size_t row = static_cast<std::size_t>(w) * outputs;
        const auto packed = layer.packed();
        const float levels = net_.levels[next_level_++];
        parallel_rows(h, out_.threads, [&](int begin, int end) {
            std::vector<const std::uint8_t*> runs(layer.runs());
            ConvolutionRow r = layer.row(packed);
            r.runs = runs.data();
            r.pitch = static_cast<std::ptrdiff_t>(k.stride) * in.bytes();
            r.pixels = w;
            r.finish = Finish::relu;
            r.levels = levels;
            for (int y = begin; y < end; ++y) {
                const int top = y * k.stride - k.pad;
                for (int i = 0; i < layer.runs(); ++i) {
                    // A run is a row of the kernel, or one tap if they are apart.
                    const int across = k.dilation == 1 ? 1 : k.size;
                    runs[i] = in.at(top + i / across * k.dilation, i % across * k.dilation - k.pad);
                }
                r.out = out.at(y, 0);
                r.added = added ? added->data() + y * row : nullptr;
                r.kept = kept ? kept->data() + y * row : nullptr;
                active_convolutions().convolve_row(r);
            }
        });
    }

    // A layer of 1x1.
    void pointwise(const IntegerLayer& layer, const Plane& in, Finish finish, void* out) {
        const int per_pixel =
            finish == Finish::signs ? layer.outputs() / output_group : layer.outputs();
        const auto packed = layer.packed();
        parallel_rows(in.h(), out_.threads, [&](int begin, int end) {
            ConvolutionRow r = layer.row(packed);
            r.pitch = in.bytes();
            r.pixels = in.w();
            r.finish = finish;
            for (int y = begin; y < end; ++y) {
                const std::uint8_t* run = in.at(y, 0);
                r.runs = &run;
                r.out = static_cast<std::uint8_t*>(out) +
                        4 * static_cast<std::size_t>(y) * in.w() * per_pixel;
                active_convolutions().convolve_row(r);
            }
        });
    }

    // Twice the size, linearly between the centers of pixels.
    void double_size(const Stream& in, int h, int w, int channels, Stream& out) const {
        const std::size_t row = static_cast<std::size_t>(w) * channels;
        parallel_rows(2 * h, out_.threads, [&](int begin, int end) {
            Stream line(row);
            for (int y = begin; y < end; ++y) {
                const int other = std::clamp(y / 2 + (y % 2 ? 1 : -1), 0, h - 1);
                const float* near = in.data() + (y / 2) * row;
                const float* next = in.data() + other * row;
                for (std::size_t i = 0; i < row; ++i) line[i] = 0.75f * near[i] + 0.25f * next[i];
                for (int x = 0; x < 2 * w; ++x) {
                    const int beside = std::clamp(x / 2 + (x % 2 ? 1 : -1), 0, w - 1);
                    const float* a = line.data() + static_cast<std::size_t>(x / 2) * channels;
                    const float* b = line.data() + static_cast<std::size_t>(beside) * channels;
                    float* to = out.data() + 2 * y * row + static_cast<std::size_t>(x) * channels;
                    for (int c = 0; c < channels; ++c) to[c] = 0.75f * a[c] + 0.25f * b[c];
                }
            }
        });
    }

    const CoarseLayers& net_;
    const NetworkOutput& out_;
    std::size_t next_level_ = 0;
};

}  // namespace

void run_coarse(const CoarseLayers& layers, const ColorImage& image, const NetworkOutput& out) {
    Coarse(layers, out).run(image);
}

}  // namespace hamflow
