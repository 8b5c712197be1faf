// Pipes, with both ends owned.
#pragma once

#include <string_view>

#include "base/error.h"
#include "sys/fd.h"

namespace caisson::sys {

struct Pipe {
  Fd read, write;
};

/// A pipe whose ends are above the standard descriptors: a caller may have started us with some of those closed, and a
/// child moves its ends there. `stage` and `object`: for errors.
Result<Pipe> makePipe(Stage stage, std::string_view object = {});

/// The descriptor itself, or a copy of it above the standard descriptors.
Result<Fd> aboveStandard(Fd fd, Stage stage);

}  // namespace caisson::sys
