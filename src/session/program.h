// pid 1's program, which is embedded in this library, as an executable file.
#pragma once

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::session {

/// A new sealed memory file with the program, to be executed by its descriptor.
Result<sys::Fd> initProgram();

}  // namespace caisson::session
