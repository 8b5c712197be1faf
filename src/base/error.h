// Constructors for the public error type of include/caisson/error.h.
#pragma once

#include "caisson/error.h"

namespace caisson {

/// An error of a failed system call; `sys_errno` is a positive errno.
Error sysError(Stage stage, std::string_view call, std::string_view object, int sys_errno, std::string_view hint = {});

/// An error without a failed system call.
Error plainError(Stage stage, std::string_view call, std::string_view object, std::string_view reason,
                 std::string_view hint = {});

/// `error` with another code, which callers compare instead of the text.
inline Error withCode(Error error, ErrorCode code) {
  error.code = code;
  return error;
}

/// The first of several errors; the rest replace its `others`. `errors` must not be empty.
Error together(std::vector<Error> errors);

/// The symbolic name of an errno ("EPERM"), or "errno 123" if it is unknown.
std::string errnoName(int sys_errno);

/// For `return fail(error)` in a function that returns a Result.
inline std::unexpected<Error> fail(Error error) { return std::unexpected<Error>(std::move(error)); }

}  // namespace caisson
