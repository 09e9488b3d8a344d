// Descriptor networks in whole numbers, for Python.
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <vector>

#include "bind.hpp"
#include "network.hpp"

namespace hamflow::bind {

namespace {

using Layers = std::vector<const IntegerLayer*>;
using Sequence = nb::typed<nb::sequence, IntegerLayer>;

// The layers of a network. The objects keep them alive: another thread may change the list.
struct Network {
    std::vector<nb::object> objects;
    Layers layers;

    explicit Network(const nb::sequence& sequence) {
        for (const nb::handle item : sequence) {
            objects.push_back(nb::borrow(item));
            layers.push_back(&nb::cast<const IntegerLayer&>(item));
        }
    }
};

void make_layer(IntegerLayer* self, In<std::int16_t, 2> weights, In<std::int32_t, 1> first,
                In<float, 1> scale, int runs, bool wide) {
    const std::size_t outputs = weights.shape(0), length = weights.shape(1);
    if (outputs < 1 || outputs > 4096 || outputs % output_group)
        throw nb::value_error("weights: a multiple of 32 outputs, 4096 at most");
    if (runs < 1 || runs > 1 << 16 || length < 1 || length > 1 << 20 ||
        length % (static_cast<std::size_t>(runs) * (wide ? 2 : 4)))
        throw nb::value_error("weights: each run must be whole words of 4 bytes");
    expect_shapes({outputs}, "first", first, "scale", scale);
    const auto fits = [](int w) { return w >= -127 && w <= 127; };
    if (!wide && !std::all_of(weights.data(), weights.data() + weights.size(), fits))
        throw nb::value_error("weights: 8 bits, from -127 to 127");
    new (self) IntegerLayer({weights.data(), weights.data() + weights.size()},
                            {first.data(), first.data() + outputs},
                            {scale.data(), scale.data() + outputs}, runs, wide);
}

ColorImage image_of(const In<float, 3>& image) {
    expect_shape(image, "image", {image.shape(0), image.shape(1), 3});
    return {image.data(), side(image.shape(0)), side(image.shape(1))};
}

// Bits or floats, by the type of the array.
template <class T>
NetworkOutput output_of(const Out<T, 3>& out, int h, int w, const IntegerLayer& last, int threads) {
    constexpr bool bits = sizeof(T) == sizeof(std::uint32_t) && !std::is_same<T, float>::value;
    const auto outputs = static_cast<std::size_t>(last.outputs());
    expect_shape(out, "out", {static_cast<std::size_t>(h), static_cast<std::size_t>(w),
                              bits ? outputs / output_group : outputs});
    if (threads < 0 || threads > 1024) throw nb::value_error("threads: 0 for all, 1024 at most");
    return {bits ? Finish::signs : Finish::values, out.data(), threads};
}

// That a layer reads what the one before wrote.
void expect_layer(const IntegerLayer* layer, int size, const IntegerLayer* before, int runs) {
    const int per_word = layer->wide() ? 2 : 4, inputs = before ? before->outputs() : 4;
    if (layer->wide() != !before || layer->runs() != runs ||
        layer->runs() * layer->run_words() * per_word != size * size * inputs)
        throw nb::value_error("a layer does not fit the one before");
}

template <class T>
void chain(const Sequence& sequence, const std::vector<std::tuple<int, int, bool>>& input,
           In<float, 3> image, Out<T, 3> out, int threads) {
    const Network network(sequence);
    const Layers& layers = network.layers;
    if (layers.size() < 2 || layers.size() > 64) throw nb::value_error("layers: 2 to 64");
    const IntegerLayer& first = *layers[0];
    if (!first.wide() || first.runs() != static_cast<int>(input.size()))
        throw nb::value_error("input: one run for each of the first layer");
    for (std::size_t l = 1; l < layers.size(); ++l) {
        if (layers[l]->runs() > 2) throw nb::value_error("layers: 1x1 or 2x2 after the first");
        expect_layer(layers[l], layers[l]->runs(), layers[l - 1], layers[l]->runs());
    }
    std::vector<InputRun> runs;
    for (const auto& [dy, dx, blurred] : input) {
        const auto near = [](int d) { return d >= -4096 && d <= 4096; };
        if (!near(dy) || !near(dx) || first.run_words() > 256)
            throw nb::value_error("input: runs must be near the pixel");
        runs.push_back({dy, dx, blurred});
    }
    const ColorImage whole = image_of(image);
    const NetworkOutput to = output_of(out, whole.h, whole.w, *layers.back(), threads);
    without_gil([&] { run_chain(layers, runs, whole, to); });
}

template <class T>
void coarse(const Sequence& sequence, const std::vector<int>& dilations,
            const std::vector<float>& levels, int local_radius, In<float, 3> image, Out<T, 3> out,
            int threads) {
    const Network network(sequence);
    const Layers& layers = network.layers;
    const std::size_t blocks = dilations.size();
    if (blocks > 64 || layers.size() != 8 + 2 * blocks || levels.size() != 6 + 2 * blocks)
        throw nb::value_error("layers, dilations and levels: not those of a coarse network");
    if (local_radius < 0 || local_radius > 12) throw nb::value_error("local_radius: 0 to 12");
    const auto at = [&](std::size_t l) { return layers[l]; };
    CoarseLayers net{at(0), at(1), at(2), at(3), at(4), {layers.begin() + 5, layers.end() - 3},
                     at(5 + 2 * blocks), at(6 + 2 * blocks), at(7 + 2 * blocks),
                     dilations, levels, local_radius};
    expect_layer(net.half, 6, nullptr, 6);
    expect_layer(net.quarter, 4, net.half, 4);
    expect_layer(net.near_first, 3, net.quarter, 3);
    expect_layer(net.near_second, 3, net.near_first, 3);
    expect_layer(net.eighth, 4, net.near_second, 4);
    const IntegerLayer* before = net.eighth;
    for (std::size_t b = 0; b < blocks; ++b) {
        if (dilations[b] < 1 || dilations[b] > 64) throw nb::value_error("dilations: 1 to 64");
        expect_layer(net.blocks[2 * b], 3, before, dilations[b] == 1 ? 3 : 9);
        expect_layer(net.blocks[2 * b + 1], 3, net.blocks[2 * b], 3);
        if (net.blocks[2 * b + 1]->outputs() != before->outputs())
            throw nb::value_error("a block must keep the number of channels");
        before = net.blocks[2 * b + 1];
    }
    expect_layer(net.far, 1, before, 1);
    expect_layer(net.near_last, 3, net.near_second, 3);
    expect_layer(net.head, 1, net.near_last, 1);
    if (net.near_second->outputs() != net.quarter->outputs() ||
        net.far->outputs() != net.near_last->outputs())
        throw nb::value_error("what is added must have the same number of channels");
    const ColorImage whole = image_of(image);
    if (whole.h % 8 || whole.w % 8) throw nb::value_error("image: sides must be multiples of 8");
    const NetworkOutput to = output_of(out, whole.h / 4, whole.w / 4, *net.head, threads);
    without_gil([&] { run_coarse(net, whole, to); });
}

template <class T>
void define_networks(nb::module_& m) {
    m.def("run_chain", chain<T>, nb::arg("layers"), nb::arg("input"), nb::arg("image"),
          out("out"), nb::arg("threads"));
    m.def("run_coarse", coarse<T>, nb::arg("layers"), nb::arg("dilations"), nb::arg("levels"),
          nb::arg("local_radius"), nb::arg("image"), out("out"), nb::arg("threads"));
}

}  // namespace

void define_descriptors(nb::module_& m) {
    nb::class_<IntegerLayer>(m, "IntegerLayer")
        .def("__init__", make_layer, nb::arg("weights"), nb::arg("first"), nb::arg("scale"),
             nb::arg("runs"), nb::arg("wide"));
    define_networks<std::uint32_t>(m);
    define_networks<float>(m);
    m.attr("UNITS_OF_COLOR") = units_of_color;
    m.attr("UNITS_OF_CONTRAST") = units_of_contrast;
    m.attr("TANH_RANGE") = tanh_range;
    m.attr("OUTPUT_GROUP") = output_group;
}

}  // namespace hamflow::bind
