#pragma once

#include <functional>
#include <string>

#include "cli/options.h"

namespace specllama::cli {

// What a flag does with its value. May throw a UsageError whose message continues a sentence that
// begins with the flag's name.
using Action = std::function<void(Options&, const std::string& value)>;

// Stores a whole number in a member of Options.
Action integer(const std::function<int&(Options&)>& member);

// The same for any number.
Action number(const std::function<double&(Options&)>& member);

// Sets a switch.
Action set(bool Options::*member);

// Actions of one flag each.
void set_seed(Options& options, const std::string& value);
void set_logprobs(Options& options, const std::string& value);
void set_acceptance(Options& options, const std::string& value);
void set_grammar(Options& options, const std::string& value);
void add_breaker(Options& options, const std::string& value);
void set_draft(Options& options, const std::string& value);
void set_spec_length(Options& options, const std::string& value);
void set_spec_tree(Options& options, const std::string& value);
void set_flash_attention(Options& options, const std::string& value);
void set_rpc(Options& options, const std::string& value);
void set_tensor_split(Options& options, const std::string& value);
void add_adapters(Options& options, const std::string& value);
void add_scaled_adapters(Options& options, const std::string& value);
void set_color(Options& options, const std::string& value);

// Actions of flags that only the console script of the Python package can serve: they say so.
void refuse_hub(Options& options, const std::string& value);
void refuse_schema(Options& options, const std::string& value);

}  // namespace specllama::cli
