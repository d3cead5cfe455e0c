#pragma once

#include <optional>
#include <string>

#include "plan/cost_curve.h"

namespace specllama {

// Cost curves are kept from one session to the next: a small text file for each machine and model,
// in $SPECLLAMA_CACHE, else in the user's cache folder. A file that cannot be read or written is
// no error: the curve is learned anew.

// key: one line that names what the curve depends on.
std::optional<CurvePoints> load_curve(const std::string& key);

// Replaces the file as a whole, so that another session reads the old one or the new one.
void save_curve(const std::string& key, const CurvePoints& points);

}  // namespace specllama
