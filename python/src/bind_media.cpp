#include <cstdint>
#include <span>
#include <string>

#include <pybind11/numpy.h>

#include "bind.h"
#include "specllama/error.h"
#include "specllama/image_file.h"
#include "specllama/media.h"
#include "token_array.h"

namespace specllama {

namespace {

using Pixels = py::array_t<std::uint8_t, py::array::c_style>;
using Samples = py::array_t<float, py::array::c_style>;

Media make_image(const Pixels& rgb) {
    if (rgb.ndim() != 3 || rgb.shape(2) != 3)
        throw InvalidArgument("An image must be an array of shape (height, width, 3).");
    const std::span pixels(rgb.data(), static_cast<std::size_t>(rgb.size()));
    const py::gil_scoped_release release;
    return Media::image(pixels, static_cast<int>(rgb.shape(1)), static_cast<int>(rgb.shape(0)));
}

Media make_audio(const Samples& samples) {
    if (samples.ndim() != 1) throw InvalidArgument("A sound must be an array of one dimension.");
    const std::span numbers(samples.data(), static_cast<std::size_t>(samples.size()));
    const py::gil_scoped_release release;
    return Media::audio(numbers);
}

}  // namespace

void bind_media(py::module_& m) {
    py::class_<Media>(m, "Media", "An image or a sound for a model that sees or hears.")
        .def_static("image", &make_image, py::arg("rgb").noconvert())
        .def_static("audio", &make_audio, py::arg("samples").noconvert())
        .def_property_readonly("id", &Media::id);
    py::class_<MediaPrompt>(m, "MediaPrompt", "A prompt with images or sounds.")
        .def_property_readonly(
            "tokens",
            [](const MediaPrompt& prompt) { return to_array(std::vector<Token>(prompt.tokens)); })
        .def_readonly("n_rows", &MediaPrompt::n_rows);
    m.attr("MOST_IMAGE_BYTES") = kMostImageBytes;
    m.attr("MOST_IMAGE_PIXELS") = kMostImagePixels;
    m.def("check_image_size", &check_image_size, py::arg("name"), py::arg("width"),
          py::arg("height"));
}

}  // namespace specllama
