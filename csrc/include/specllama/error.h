#pragma once

#include <stdexcept>

namespace specllama {

// Base class of all errors of this library. The message is one sentence for the user.
class Error : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

// An option, a prompt or a token id that cannot be used.
class InvalidArgument : public Error {
    using Error::Error;
};

// A file that is not there, not a GGUF, damaged, or not a model that generates text.
class ModelError : public Error {
    using Error::Error;
};

// There is not enough memory for the model, its KV memory or its computation.
class OutOfMemory : public Error {
    using Error::Error;
};

// llama.cpp could not decode, or gave logits that are not numbers.
class DecodeError : public Error {
    using Error::Error;
};

// The session, or the stream, was closed before the call.
class Closed : public Error {
    using Error::Error;
};

// Another thread or the drafter is using the session, or all its sequences are in use.
class Busy : public Error {
    using Error::Error;
};

// A progress function asked to stop.
class Interrupted : public Error {
    using Error::Error;
};

// A drafter failed. The engine records it, and the round continues without a draft.
class DrafterError : public Error {
    using Error::Error;
};

}  // namespace specllama
