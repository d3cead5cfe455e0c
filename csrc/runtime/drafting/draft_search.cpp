#include "runtime/drafting/draft_search.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "device/offload.h"
#include "gguf/architecture/weights.h"
#include "gguf/block_file.h"
#include "gguf/head_file.h"
#include "llama/backend.h"
#include "specllama/error.h"
#include "specllama/model_file.h"
#include "system/host.h"

namespace specllama {

namespace {

namespace fs = std::filesystem;

constexpr int kMostEntries = 4096;         // of folders that are read
constexpr int kMostFiles = 32;             // that are opened
constexpr std::uint64_t kLeastRatio = 10;  // of a target's weights to a draft model's
constexpr double kBelieved = 0.7;          // prior chance that a drafted token is right
constexpr int kMostDrafted = 16;           // tokens of a draft

// Parts of the names of files that are not complete models.
constexpr std::array kNames = {"mtp-", "eagle3-", "dflash-", "dspark-"};

bool is_named_draft(const std::string& name) {
    return std::ranges::any_of(
        kNames, [&](const char* part) { return name.find(part) != std::string::npos; });
}

std::string lower(std::string text) {
    std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
    return text;
}

// Whether it is a part of a split model other than the first.
bool is_later_part(const std::string& name) {
    const auto of = name.rfind("-of-");
    return of != std::string::npos && of >= 5 && name.compare(of - 5, 5, "00001") != 0 &&
           std::isdigit(static_cast<unsigned char>(name[of - 1])) != 0;
}

// The folder of a repository's files in the cache of the Hub, models--OWNER--NAME/snapshots;
// nullopt: the model is not there.
std::optional<fs::path> repository(const fs::path& model) {
    for (fs::path folder = model.parent_path(); folder.has_relative_path();
         folder = folder.parent_path())
        if (folder.filename() == "snapshots" &&
            folder.parent_path().filename().string().starts_with("models--"))
            return folder;
    return {};
}

// The GGUF files next to a model that may draft for it by name or size; those by name first.
std::vector<std::string> files_next_to(const Header& target) {
    const fs::path model = fs::absolute(target.path).lexically_normal();
    std::vector<std::string> named;
    std::vector<std::string> others;
    std::vector<fs::path> known = {fs::weakly_canonical(model)};
    int n_seen = 0;
    const auto look = [&](const fs::directory_entry& entry) {
        std::error_code error;
        const std::string name = lower(entry.path().filename().string());
        if (!name.ends_with(".gguf") || is_later_part(name) || !entry.is_regular_file(error))
            return;
        // In the cache of the Hub, one file has a name in each of several snapshots.
        const fs::path real = fs::weakly_canonical(entry.path(), error);
        if (error || std::ranges::find(known, real) != known.end()) return;
        if (is_named_draft(name))
            named.push_back(entry.path().string());
        else if (entry.file_size(error) <= target.weights.total / kLeastRatio && !error)
            others.push_back(entry.path().string());
        else
            return;
        known.push_back(real);
    };
    std::error_code error;
    const auto skip = fs::directory_options::skip_permission_denied;
    const auto walk = [&](auto entry) {
        for (; !error && entry != decltype(entry)() && n_seen < kMostEntries;
             entry.increment(error), ++n_seen)
            look(*entry);
    };
    if (const auto root = repository(model))
        walk(fs::recursive_directory_iterator(*root, skip, error));
    else
        walk(fs::directory_iterator(model.parent_path(), skip, error));
    std::ranges::sort(named);
    std::ranges::sort(others);
    named.insert(named.end(), others.begin(), others.end());
    if (named.size() > kMostFiles) named.resize(kMostFiles);
    return named;
}

// Bytes of the matrices from a layer on, and of the output.
double bytes_per_decode(const Header& header, int first_layer) {
    double bytes = 0;
    for (const Matrix& matrix : header.matrices) {
        const int layer = layer_of(matrix.name);
        if (layer >= 0 && layer < first_layer) continue;
        bytes +=
            static_cast<double>(matrix.n_bytes()) * (matrix.of_experts ? header.expert_share : 1);
    }
    return bytes;
}

// Expected bytes of weights read per token: in each round the target decodes once, and the drafter
// once per n_at_once tokens of a draft, which has the best length. This is the cost of tokens where
// memory is the limit.
double expected_bytes(double target, double drafter, int n_at_once) {
    double best = std::numeric_limits<double>::infinity();
    double reached = 1;
    double tokens = 1;
    for (int n = 1; n <= kMostDrafted; ++n) {
        reached *= kBelieved;
        tokens += reached;
        const int n_decodes = (n + n_at_once - 1) / n_at_once;
        best = std::min(best, (target + n_decodes * drafter) / tokens);
    }
    return best;
}

// nullopt: the file is not a draft for the target. Throws ModelError with the reason if it cannot
// be one.
std::optional<NearbyDraft> examine(const std::string& path, const Header& target) {
    NearbyDraft draft{.header = check_gguf(path), .what = "a smaller model"};
    const Header& header = draft.header;
    double bytes = bytes_per_decode(header, 0);
    int n_at_once = 1;
    if (header.is_head()) {
        check_head(header, target);
        draft.what = header.head_name();
        if (header.shares_output) bytes += static_cast<double>(target.weights.output);
        if (header.traits.kind == Architecture::Kind::block)
            n_at_once = check_block_drafter(path, target).n_draft();
    } else {
        const bool is_small = header.weights.total <= target.weights.total / kLeastRatio;
        if (header.architecture != target.architecture || !is_small) return {};
    }
    draft.bytes_per_token = expected_bytes(bytes_per_decode(target, 0), bytes, n_at_once);
    return draft;
}

// Whether the memory of this machine holds the weights of both; true if that is not known.
bool both_fit(const Header& target, const Header& draft) {
    const MemoryBudget budget = memory_budget({});
    const std::uint64_t here = memory_available();
    if (here == 0) return true;
    const std::uint64_t room = budget.devices.empty() ? here : budget.bytes + here;
    return target.weights.total + draft.weights.total <= room;
}

}  // namespace

std::vector<NearbyDraft> drafts_next_to(const Header& target) {
    std::vector<NearbyDraft> found;
    std::optional<std::uint64_t> vocabulary;
    for (const std::string& path : files_next_to(target)) {
        try {
            std::optional<NearbyDraft> draft = examine(path, target);
            if (!draft || draft->header.n_vocab != target.n_vocab ||
                !both_fit(target, draft->header))
                continue;
            if (!vocabulary) vocabulary = read_model_file(target.path).vocabulary;
            const ModelFile file = read_model_file(path);
            if (file.vocabulary == *vocabulary && (file.can_draft || draft->header.is_head()))
                found.push_back(std::move(*draft));
        } catch (const Error& error) {
            inform(error.what());
        }
    }
    std::ranges::stable_sort(found, {}, &NearbyDraft::bytes_per_token);
    return found;
}

double own_prediction_bytes(const Header& target) {
    const double bytes = bytes_per_decode(target, static_cast<int>(target.layers.size()));
    return expected_bytes(bytes_per_decode(target, 0), bytes, 1);
}

}  // namespace specllama
