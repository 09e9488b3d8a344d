// Whole networks in whole numbers: the same bits on every level, thread count and machine. Besides
// whole numbers they take single sums, products, quotients and roots of floats, each of which
// IEEE 754 rounds in one way; so the hashes below hold for x86-64 and ARM alike.
#include <cstdio>
#include <memory>

#include "../network.hpp"
#include "../simd/levels.hpp"
#include "../threads.hpp"
#include "testing.hpp"

namespace hamflow::test {
namespace {

class Layers {
   public:
    // size x size pixels of `inputs` channels, read in so many runs.
    const IntegerLayer* add(int outputs, int size, int inputs, int runs, bool wide, float scale) {
        const auto count = static_cast<std::size_t>(size) * size * inputs;
        std::vector<std::int16_t> weights(outputs * count);
        for (std::int16_t& w : weights) w = static_cast<std::int16_t>(random_.below(255) - 127);
        std::vector<std::int32_t> first(outputs);
        for (std::int32_t& f : first) f = random_.below(2001) - 1000;
        std::vector<float> scales(outputs);
        for (float& s : scales) s = scale * (1 + 0.5f * random_.signed_unit());
        layers_.push_back(std::make_unique<IntegerLayer>(weights, first, scales, runs, wide));
        return layers_.back().get();
    }

   private:
    Random random_{7};
    std::vector<std::unique_ptr<IntegerLayer>> layers_;
};

template <class T>
std::uint64_t hash(const std::vector<T>& values) {  // FNV-1a
    std::uint64_t h = 0xcbf29ce484222325u;
    for (const T value : values) {
        std::uint32_t word;
        std::memcpy(&word, &value, sizeof word);
        for (int k = 0; k < 4; ++k) h = (h ^ (word >> (8 * k) & 255)) * 0x100000001b3u;
    }
    return h;
}

// Bits and values of a network whose outputs are h x w x 64.
template <class Run>
void check_hashes(const char* name, int h, int w, const Run& run, std::uint64_t bits_hash,
                  std::uint64_t values_hash) {
    const std::size_t n = static_cast<std::size_t>(h) * w;
    std::vector<std::uint32_t> bits(n * 2);
    std::vector<float> values(n * 64);
    run(NetworkOutput{Finish::signs, bits.data(), 0});
    run(NetworkOutput{Finish::values, values.data(), 0});
    std::size_t set = 0;
    for (const float value : values) set += value > 0;
    check(set > n * 64 / 4 && set < n * 64 * 3 / 4, std::string(name) + ": bits that say something");
    char said[80];
    std::snprintf(said, sizeof said, ": hashes are %016llx, %016llx",
                  static_cast<unsigned long long>(hash(bits)),
                  static_cast<unsigned long long>(hash(values)));
    check(hash(bits) == bits_hash && hash(values) == values_hash, name + std::string(said));
}

// One row of random numbers and shapes: all ends of tiles, all that may become of the sums.
struct RowCase {
    ConvolutionRow row{};
    std::vector<std::uint8_t> activations;
    std::vector<const std::uint8_t*> runs;
    std::vector<std::int16_t> weights;
    std::vector<std::int32_t> first;
    std::vector<float> scale, added;

    explicit RowCase(Random& random) {
        row.run_count = 1 + random.below(4), row.run_words = 1 + random.below(40);
        row.pixels = 1 + random.below(70), row.outputs = output_group * (1 + random.below(3));
        row.wide = random.below(4) == 0, row.levels = 100;
        row.pairs_fit = !row.wide && random.below(2);
        row.finish = static_cast<Finish>(random.below(4));
        row.pitch = 4 * (1 + random.below(30));
        const auto reach = static_cast<std::size_t>(row.pixels * row.pitch + 4 * row.run_words + 9);
        activations.resize(reach * row.run_count);
        for (std::uint8_t& a : activations) a = static_cast<std::uint8_t>(random.below(256));
        for (int k = 0; k < row.run_count; ++k)
            runs.push_back(activations.data() + k * reach + random.below(9));
        row.runs = runs.data();
        const int words = row.run_count * row.run_words, limit = row.pairs_fit ? 64 : 127;
        weights.resize(static_cast<std::size_t>(words) * row.outputs * (row.wide ? 2 : 4));
        for (std::int16_t& w : weights)
            w = static_cast<std::int16_t>(random.below(2 * limit + 1) - limit);
        for (int c = 0; c < row.outputs; ++c) {
            first.push_back(random.below(20001) - 10000);
            scale.push_back((1.1f + random.signed_unit()) * (row.finish == Finish::tanh ? 1 : 1e-4f));
        }
        row.first = first.data(), row.scale = scale.data();
        added.resize(static_cast<std::size_t>(row.pixels) * row.outputs);
        for (float& a : added) a = random.signed_unit();
        if (row.finish == Finish::relu && random.below(2)) row.added = added.data();
    }
};

void check_row(Random& random, const std::vector<const Convolutions*>& tables) {
    const RowCase c(random);
    const std::size_t count = static_cast<std::size_t>(c.row.pixels) * c.row.outputs;
    const auto run = [&](const Convolutions& table, Output<float>& out, Output<float>& kept) {
        std::vector<std::uint8_t> packed(sizeof(std::int16_t) * c.weights.size());
        table.pack_weights({c.weights.data(), c.row.outputs, c.row.run_count * c.row.run_words,
                            c.row.wide, c.row.pairs_fit, packed.data()});
        ConvolutionRow row = c.row;
        row.weights = packed.data(), row.out = out.data();
        if (row.finish == Finish::relu) row.kept = kept.data();
        table.convolve_row(row);
    };
    Output<float> out(count), kept(count);
    run(reference_convolutions, out, kept);
    for (const Convolutions* table : tables) {
        current_level = table->name;
        Output<float> got(count), got_kept(count);
        run(*table, got, got_kept);
        check(got.same_bytes(out) && got_kept.same_bytes(kept), "a row is that of the reference");
    }
}

}  // namespace

void check_networks(const std::vector<const Convolutions*>& tables,
                    const std::vector<int>& thread_counts) {
    constexpr int h = 24, w = 40;
    Random random{3};
    std::vector<float> pixels(h * w * 3);
    for (float& p : pixels) p = static_cast<float>(random.below(256)) / 255.0f;
    const ColorImage image{pixels.data(), h, w};

    Layers all;
    const std::vector<const IntegerLayer*> chain{all.add(32, 3, 4, 3, true, 1e-2f),
                                                 all.add(32, 2, 32, 2, false, 0.2f),
                                                 all.add(64, 2, 32, 2, false, 1e-3f)};
    const std::vector<InputRun> input{{-2, -2, false}, {-1, -2, false}, {0, -2, true}};
    const CoarseLayers coarse{
        all.add(32, 6, 4, 6, true, 2e-6f),      all.add(32, 4, 32, 4, false, 4e-5f),
        all.add(32, 3, 32, 3, false, 4e-5f),    all.add(32, 3, 32, 3, false, 4e-5f),
        all.add(32, 4, 32, 4, false, 4e-5f),    {all.add(32, 3, 32, 9, false, 4e-5f),
                                                 all.add(32, 3, 32, 3, false, 4e-5f)},
        all.add(32, 1, 32, 1, false, 4e-4f),    all.add(32, 3, 32, 3, false, 4e-5f),
        all.add(64, 1, 32, 1, false, 1e-3f),    {2},
        std::vector<float>(8, 64.0f),           4};
    for (int k = 0; k < 1500; ++k) {
        current_case = "row " + std::to_string(k);
        check_row(random, tables);
    }
    current_case = "networks";
    for (const Convolutions* table : tables) {
        current_level = table->name;
        check(force_convolutions(table->name) && &active_convolutions() == table, "forced");
        for (const int count : thread_counts) {
            set_num_threads(count);
            check_hashes("chain", h, w,
                         [&](const NetworkOutput& out) { run_chain(chain, input, image, out); },
                         0xe1cbdd93d2313aa4u, 0xe110a0215cdf1287u);
            check_hashes("coarse", h / 4, w / 4,
                         [&](const NetworkOutput& out) { run_coarse(coarse, image, out); },
                         0x8ceeca21556e05cfu, 0xe8ec969dd5913542u);
        }
    }
    check(!force_convolutions("nonsense"), "unknown name");
    check(force_convolutions(nullptr), "back to automatic");
}

}  // namespace hamflow::test
