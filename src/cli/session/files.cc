// `caisson session read|write`: files of a session's workspace, byte for byte.
#include <unistd.h>

#include <cerrno>

#include "cli/output.h"
#include "cli/session/verbs.h"

namespace caisson::cli {
namespace {

constexpr std::uint64_t kPiece = 8U << 20;
constexpr std::size_t kMaxInput = 1U << 30;

int read(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session read", 2, 2);
  if (!session) return printError(session.error());
  for (std::uint64_t offset = 0;;) {
    const auto piece = session->read(arguments.operands[1], offset, kPiece);
    if (!piece) return printError(piece.error());
    const int failure = writeContent(STDOUT_FILENO, piece->data);
    if (failure == EPIPE) return 0;
    if (failure != 0) return printError(sysError(Stage::usage, "write", "standard output", failure));
    offset += piece->data.size();
    if (piece->data.empty() || offset >= piece->size) return 0;
  }
}

int write(const Arguments& arguments) {
  auto session = sessionOf(arguments, "session write", 2, 2);
  if (!session) return printError(session.error());
  std::string data;
  char buffer[64 * 1024];
  for (;;) {
    const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return printError(sysError(Stage::usage, "read", "standard input", errno));
    if (got == 0) break;
    data.append(buffer, static_cast<std::size_t>(got));
    if (data.size() > kMaxInput) {
      return printError(usageError("session write", "more than 1 GiB comes from standard input", "write it in parts"));
    }
  }
  if (auto written = session->write(arguments.operands[1], data); !written) return printError(written.error());
  return 0;
}

}  // namespace

constinit const Verb kSessionRead{
    .path = "session read",
    .summary = "Print a file of a session's workspace",
    .description = "PATH is relative to /workspace, or absolute inside.",
    .examples = "caisson session read fix-login src/main.py",
    .topic = Topic::session,
    .syntax = {.operands = "ID PATH"},
    .perform = read,
};

constinit const Verb kSessionWrite{
    .path = "session write",
    .summary = "Replace or make a file of a session's workspace",
    .description =
        "The content comes from standard input. Directories on the way are made; the file appears whole or not "
        "at all.",
    .examples = "caisson session write fix-login src/main.py < main.py",
    .topic = Topic::session,
    .syntax = {.operands = "ID PATH"},
    .perform = write,
};

}  // namespace caisson::cli
