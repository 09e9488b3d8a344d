// What the readers of files need, for Python.
#include "bind.hpp"
#include "png.hpp"

namespace hamflow::bind {

namespace {

bool unfilter(In<std::uint8_t, 2> lines, int depth, Out<std::uint8_t, 2> pixels) {
    const std::size_t rows = lines.shape(0), length = lines.shape(1);
    if (length < 1) throw nb::value_error("lines: each begins with the number of its filter");
    if (depth < 1 || depth > 8) throw nb::value_error("depth: 1 to 8 bytes per pixel");
    expect_shape(pixels, "pixels", {rows, length - 1});
    bool known = false;
    without_gil([&] {
        known = png_unfilter(lines.data(), rows, length - 1, depth, pixels.data());
    });
    return known;
}

}  // namespace

void define_io(nb::module_& m) {
    m.def("png_unfilter", unfilter, nb::arg("lines"), nb::arg("depth"), out("pixels"));
}

}  // namespace hamflow::bind
