#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// A draft model in the types that this machine's CPU multiplies fastest. A draft may be anything,
// so its file may be converted: into the cache folder, whose "drafts" hold 4 GiB at most; those
// unused for longest go first.

// A conversion beside a session, for later ones.
class BackgroundConversion {
 public:
    // type: see convert_draft
    BackgroundConversion(const Header& draft, const std::string& type);
    // Gives up, if it is not done: after the matrix at which it is.
    ~BackgroundConversion();
    BackgroundConversion(const BackgroundConversion&) = delete;
    BackgroundConversion& operator=(const BackgroundConversion&) = delete;

 private:
    std::atomic<bool> given_up_ = false;
    std::thread thread_;
};

// What is decided about a draft model's file.
struct DraftTypes {
    Header header;  // of the file that drafts
    // Null: nothing is converted for later sessions.
    std::unique_ptr<BackgroundConversion> later;
};

// What decides it, besides the file.
struct DraftUse {
    std::string type;  // DraftModelOptions::type
    bool on_gpu = false;
    int n_threads = 1;
    std::uint64_t target_bytes = 0;  // of the target's weights; 0: not known
};

// The file to draft with: the given one, or a copy of it, which exists or is made now. With type
// "auto" there is a copy only
//   - of a file of at least 16 MiB, and at most a quarter of the target's weights;
//   - if another type promises at least 1.15 times the speed, by the measured times of types;
//   - if the draft model is not on a GPU.
// It is made now if that takes less than ten seconds, by estimate; else beside the session.
// What fails is a notice with "auto", else an error. Throws InvalidArgument and ModelError, and
// Interrupted and what `progress` throws.
DraftTypes choose_draft_types(const Header& draft, const DraftUse& use,
                              const ProgressFunction& progress);

// The path of a copy of a draft model in a type: q4_0, q4_1, q8_0 or iq4_nl. It exists, or is made
// now. Throws as above.
std::string convert_draft(const Header& draft, const std::string& type, int n_threads,
                          const ProgressFunction& progress);

}  // namespace specllama
