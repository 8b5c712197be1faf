#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "cli/safe_text.h"

namespace caisson::cli {

int writeAll(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(descriptor, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (written < 0 && errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int print(std::string_view text) { return printBytes(safeLines(text)); }

int printBytes(std::string_view bytes) {
  const int failure = writeAll(STDOUT_FILENO, bytes);
  if (failure == 0 || failure == EPIPE) return 0;
  return printError(sysError(Stage::usage, "write", "standard output", failure));
}

int writeContent(int descriptor, std::string_view bytes) {
  return ::isatty(descriptor) == 1 ? writeAll(descriptor, safeLines(bytes)) : writeAll(descriptor, bytes);
}

void printNotice(std::string_view text) { writeAll(STDERR_FILENO, "caisson: " + safeLine(text) + "\n"); }

std::string describe(const Error& error) {
  Error safe = error;
  for (std::string* part : {&safe.call, &safe.object, &safe.reason, &safe.hint}) *part = safeLine(*part);
  safe.others.clear();
  std::string text = safe.message();
  for (const Error& other : error.others) text += "\ncaisson: " + describe(other);
  return text;
}

int printError(const Error& error) {
  writeAll(STDERR_FILENO, "caisson: " + describe(error) + "\n");
  return kRefused;
}

bool wantsColour(int descriptor) {
  const char* refused = std::getenv("NO_COLOR");
  return (refused == nullptr || *refused == '\0') && ::isatty(descriptor) == 1;
}

}  // namespace caisson::cli
