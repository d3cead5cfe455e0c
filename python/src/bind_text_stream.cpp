#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bind.h"
#include "specllama/error.h"
#include "specllama/tokenizer.h"
#include "text/text_stream.h"

namespace specllama {

namespace {

std::vector<std::string> checked(std::vector<std::string> stop) {
    if (std::ranges::any_of(stop, &std::string::empty))
        throw InvalidArgument("A stop string is empty; leave it out.");
    return stop;
}

// A text and the tokenizer of its tokens.
class Spelled {
 public:
    Spelled(std::shared_ptr<Tokenizer> tokenizer, std::vector<std::string> stop)
        : tokenizer_(std::move(tokenizer)), text_(checked(std::move(stop))) {}

    bool push(Token token, bool from_draft, std::optional<TokenLogprobs> logprobs) {
        return text_.push(token, from_draft, std::move(logprobs),
                          [&](std::string& bytes) { tokenizer_->append_piece(token, bytes); });
    }

    std::vector<Chunk> take(bool ended) {
        std::vector<Chunk> chunks;
        text_.take(ended, FinishReason::none, chunks);
        return chunks;
    }

    std::size_t n_kept() const { return text_.n_kept(); }
    std::string stop_string() const { return text_.stop_string(); }

 private:
    std::shared_ptr<Tokenizer> tokenizer_;
    TextStream text_;
};

}  // namespace

void bind_text_stream(py::module_& m) {
    py::class_<Spelled>(m, "TextStream", "Turns generated tokens into chunks, as a session does.")
        .def(py::init<std::shared_ptr<Tokenizer>, std::vector<std::string>>(), py::arg("tokenizer"),
             py::kw_only(), py::arg("stop"))
        .def("push", &Spelled::push, py::arg("token"), py::kw_only(), py::arg("from_draft"),
             py::arg("logprobs"))
        .def("take", &Spelled::take, py::kw_only(), py::arg("ended"))
        .def_property_readonly("n_kept", &Spelled::n_kept)
        .def_property_readonly("stop_string", &Spelled::stop_string);
}

}  // namespace specllama
