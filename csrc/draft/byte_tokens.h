#pragma once

#include <array>

#include "specllama/types.h"

namespace specllama {

// The tokens by which a mask is asked for bytes.
struct ByteTokens {
    // [byte]: a token that is this byte and no more; kNoToken: there is none.
    std::array<Token, 256> of;
    // One that ends a text; kNoToken: there is none.
    Token end = kNoToken;
};

}  // namespace specllama
