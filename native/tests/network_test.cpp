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
