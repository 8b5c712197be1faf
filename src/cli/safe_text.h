// safeLine() and safeLines() of base/safe_text.h, for everything that a command prints.
#pragma once

#include "base/safe_text.h"

namespace caisson::cli {

using caisson::safeLine;
using caisson::safeLines;

}  // namespace caisson::cli
