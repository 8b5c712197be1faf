// pid 1's program, which is part of this library, as a file to execute.
#pragma once

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::session {

/// A sealed memory file.
Result<sys::Fd> initProgram();

}  // namespace caisson::session
