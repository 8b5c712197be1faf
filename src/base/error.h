// The project's error type is public: see include/caisson/error.h. This header adds the ways to make one.
#pragma once

#include "caisson/error.h"

namespace caisson {

/// An error from a failed system call; `sys_errno` is a positive errno.
Error sysError(Stage stage, std::string_view call, std::string_view object, int sys_errno, std::string_view hint = {});

/// An error that no system call caused.
Error plainError(Stage stage, std::string_view call, std::string_view object, std::string_view reason,
                 std::string_view hint = {});

/// The kernel's name of an errno ("EPERM"), or "errno 123" for one it does not know.
std::string errnoName(int sys_errno);

inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }

}  // namespace caisson
