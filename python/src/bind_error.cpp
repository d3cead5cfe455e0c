#include <exception>
#include <new>
#include <string_view>
#include <utility>

#include "bind.h"
#include "specllama/error.h"

namespace specllama {

namespace {

// Raises an exception class of specllama.errors.
void raise(const char* name, std::string_view what) {
    // A message may quote a damaged file, which need not be UTF-8.
    const auto text = py::reinterpret_steal<py::str>(
        PyUnicode_DecodeUTF8(what.data(), static_cast<py::ssize_t>(what.size()), "replace"));
    PyErr_SetObject(py::module_::import("specllama.errors").attr(name).ptr(), text.ptr());
}

}  // namespace

void bind_error(py::module_&) {
    py::register_local_exception_translator([](std::exception_ptr thrown) {
        try {
            std::rethrow_exception(std::move(thrown));
        } catch (const InvalidArgument& error) {
            raise("ArgumentError", error.what());
        } catch (const ModelError& error) {
            raise("ModelError", error.what());
        } catch (const OutOfMemory& error) {
            raise("OutOfMemoryError", error.what());
        } catch (const DecodeError& error) {
            raise("DecodeError", error.what());
        } catch (const Closed& error) {
            raise("ClosedError", error.what());
        } catch (const Busy& error) {
            raise("BusyError", error.what());
        } catch (const Error& error) {
            raise("SpecllamaError", error.what());
        } catch (const std::bad_alloc&) {
            raise("OutOfMemoryError", "There is not enough memory; lower n_ctx, n_seq or n_batch.");
        }
    });
}

}  // namespace specllama
