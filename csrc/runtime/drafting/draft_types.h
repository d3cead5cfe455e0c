#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "gguf/gguf_file.h"
#include "specllama/session_options.h"

namespace specllama {

// A draft model in the types that this machine's CPU multiplies fastest. Its file may be converted,
// because drafts do not change the output. The copies are in the cache folder, in "drafts" (at most
// 4 GiB; the least recently used are removed first).

// A conversion during a session, for later sessions.
class BackgroundConversion {
 public:
    // type: see convert_draft
    BackgroundConversion(const Header& draft, const std::string& type);
    // Cancels the conversion after its current matrix, if it is not done.
    ~BackgroundConversion();
    BackgroundConversion(const BackgroundConversion&) = delete;
    BackgroundConversion& operator=(const BackgroundConversion&) = delete;

 private:
    std::atomic<bool> given_up_ = false;
    std::thread thread_;
};

// The decision about a draft model's file.
struct DraftTypes {
    Header header;  // of the file to draft with
    // Null: nothing is converted for later sessions.
    std::unique_ptr<BackgroundConversion> later;
};

// The input of the decision besides the file.
struct DraftUse {
    std::string type;  // DraftModelOptions::type
    bool on_gpu = false;
    int n_threads = 1;
    std::uint64_t target_bytes = 0;  // of the target's weights; 0: not known
};

// The file to draft with: the given one, or its copy, which is made if it does not exist. With type
// "auto" there is a copy only
//   - of a file of at least 16 MiB, and at most a quarter of the target's weights;
//   - if another type promises at least 1.15 times the speed, by the measured times of types;
//   - if the draft model is not on a GPU.
// It is made now if the estimate is less than ten seconds, otherwise during the session. A failure
// is a notice with "auto", otherwise an error. Throws InvalidArgument, ModelError, Interrupted, and
// what `progress` throws.
DraftTypes choose_draft_types(const Header& draft, const DraftUse& use,
                              const ProgressFunction& progress);

// The path of a copy of a draft model in a type (q4_0, q4_1, q8_0 or iq4_nl), which is made if it
// does not exist. Throws as above.
std::string convert_draft(const Header& draft, const std::string& type, int n_threads,
                          const ProgressFunction& progress);

}  // namespace specllama
