#pragma once

#include <optional>
#include <string>

#include "specllama/option.h"

namespace specllama {

// Images and sounds in prompts. The table below the struct has each option's effect, range and
// special values.
struct MediaOptions {
    // Path of the projector's GGUF file; "": the model reads text only.
    std::string mmproj;
    bool mmproj_offload = true;
    std::optional<int> image_min_tokens;
    std::optional<int> image_max_tokens;
};

template <typename Visit>
void list_options(const MediaOptions*, Visit&& option) {
    using Options = MediaOptions;
    option(&Options::mmproj,
           {.name = "mmproj",
            .help = "Multimodal projector, a GGUF file that lets the model see or hear. A session "
                    "with one is not exact (docs/guides/images.md).",
            .unset = "none",
            .flags = "-mm --mmproj",
            .value = "FILE"});
    option(&Options::mmproj_offload,
           {.name = "mmproj_offload",
            .help = "Run the projector on a GPU, if the model has layers there.",
            .flags = "--no-mmproj-offload"});
    option(&Options::image_min_tokens,
           {.name = "image_min_tokens",
            .help = "Minimum number of tokens per image, for models that read images of any size. "
                    "Smaller images are enlarged.",
            .low = 1,
            .high = 1 << 20,
            .unset = "from the projector's file",
            .flags = "--image-min-tokens"});
    option(&Options::image_max_tokens,
           {.name = "image_max_tokens",
            .help = "Maximum number of tokens per image, for models that read images of any size. "
                    "Larger images are reduced.",
            .low = 1,
            .high = 1 << 20,
            .unset = "from the projector's file",
            .flags = "--image-max-tokens"});
}

}  // namespace specllama
