#pragma once

// All of the library's interface.

#include "specllama/beam.h"
#include "specllama/device.h"
#include "specllama/draft.h"
#include "specllama/drafter.h"
#include "specllama/error.h"
#include "specllama/evidence.h"
#include "specllama/generate_options.h"
#include "specllama/model_file.h"
#include "specllama/option.h"
#include "specllama/session.h"
#include "specllama/session_info.h"
#include "specllama/session_options.h"
#include "specllama/source.h"
#include "specllama/stats.h"
#include "specllama/stats_fields.h"
#include "specllama/stream.h"
#include "specllama/tokenizer.h"
#include "specllama/trace.h"
#include "specllama/types.h"
#include "specllama/verifier.h"
