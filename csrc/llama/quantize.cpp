#include "llama/quantize.h"

#include <cstddef>
#include <cstdio>
#include <exception>

#include "llama.h"
#include "llama/assert_guard.h"
#include "llama/backend.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Bytes of weights in main memory at once.
constexpr std::size_t kBuffer = std::size_t{128} << 20;

llama_ftype file_type(ggml_type type) {
    switch (type) {
        case GGML_TYPE_Q4_0:
            return LLAMA_FTYPE_MOSTLY_Q4_0;
        case GGML_TYPE_Q4_1:
            return LLAMA_FTYPE_MOSTLY_Q4_1;
        case GGML_TYPE_IQ4_NL:
            return LLAMA_FTYPE_MOSTLY_IQ4_NL;
        default:
            return LLAMA_FTYPE_MOSTLY_Q8_0;
    }
}

}  // namespace

void quantize(const std::string& from, const std::string& to, ggml_type type, int n_threads,
              const ProgressFunction& progress) {
    ensure_backend();
    llama_model_quantize_params params = llama_model_quantize_default_params();
    params.nthread = n_threads;
    params.ftype = file_type(type);
    params.allow_requantize = true;
    params.pure = true;
    params.max_buf_size = kBuffer;

    // llama.cpp has no other way to report progress or to be stopped. It logs each
    // tensor, as "[  12/ 290] blk.0.attn_k.weight - ...", while none of its other threads runs.
    std::exception_ptr thrown;
    const auto follow = [&](const char* text) {
        int done = 0;
        int all = 0;
        if (thrown || !progress || std::sscanf(text, "[%d/%d]", &done, &all) != 2 || all <= 0)
            return;
        const AssertGuard::Suspend off;
        try {
            if (!progress(static_cast<float>(done - 1) / static_cast<float>(all)))
                throw Interrupted("Converting " + from + " was interrupted.");
        } catch (...) {
            thrown = std::current_exception();
        }
        if (thrown)
            throw Error("interrupted");  // ends llama.cpp's loop; `thrown` is what callers see
    };
    const ErrorLog errors(ErrorLog::Warnings::dropped);
    const AssertGuard assertions;
    const LogListener listener(follow);
    const bool done = llama_model_quantize(from.c_str(), to.c_str(), &params) == 0;
    if (thrown) std::rethrow_exception(thrown);
    if (!done)
        throw ModelError("Cannot convert " + from + " to " + ggml_type_name(type) + ": " +
                         errors.first() + ".");
    if (progress) progress(1);
}

}  // namespace specllama
