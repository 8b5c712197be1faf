#include "service/terminal.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

#include "api/result_json.h"
#include "base/json_document.h"
#include "sys/helper_process.h"

namespace caisson::service {
namespace {

constexpr int kOptionsDescriptor = 3;
constexpr int kResultDescriptor = 4;

/// A sealed memory file, since arguments are visible to all users.
Result<sys::Fd> memoryFile(const std::string& text) {
  sys::Fd file(::memfd_create("caisson-terminal", MFD_CLOEXEC));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      ::lseek(file.get(), 0, SEEK_SET) != 0)
    return std::unexpected(sysError(Stage::launch, "memfd_create", "terminal", errno));
  return file;
}

std::string optionsText(const TerminalOptions& options) {
  const ExecRequest& request = options.request;
  Json value{{"sandbox", options.sandbox},
             {"command", request.command},
             {"environment", request.environment},
             {"directory", request.working_directory}};
  if (request.timeout_seconds) value["timeout"] = *request.timeout_seconds;
  return writeJson(value);
}

std::string readToEnd(int descriptor) {
  std::string text;
  char buffer[4096];
  for (ssize_t got = 0; (got = ::read(descriptor, buffer, sizeof buffer)) > 0 && text.size() < (std::size_t{1} << 24U);)
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

}  // namespace

Result<Terminal> Terminal::start(const TerminalOptions& options) {
  auto file = memoryFile(optionsText(options));
  if (!file) return std::unexpected(file.error());
  const winsize size{.ws_row = options.rows, .ws_col = options.columns, .ws_xpixel = 0, .ws_ypixel = 0};
  int master = -1, slave = -1;
  if (::openpty(&master, &slave, nullptr, nullptr, &size) != 0)
    return std::unexpected(sysError(Stage::launch, "openpty", options.sandbox, errno));
  Terminal terminal;
  terminal.master_ = sys::Fd(master);
  const sys::Fd other(slave);
  ::fcntl(master, F_SETFD, FD_CLOEXEC);
  ::fcntl(slave, F_SETFD, FD_CLOEXEC);
  ::fcntl(master, F_SETFL, O_NONBLOCK);
  int pipe[2];
  if (::pipe2(pipe, O_CLOEXEC) != 0) return std::unexpected(sysError(Stage::launch, "pipe", options.sandbox, errno));
  terminal.result_ = sys::Fd(pipe[0]);
  const sys::Fd report(pipe[1]);

  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  for (const int number : {0, 1, 2}) ::posix_spawn_file_actions_adddup2(&actions, slave, number);
  // Numbers that no source has: a source of one dup2 must not be the target of an earlier one.
  const int spare = std::max({slave, file->get(), report.get(), kResultDescriptor}) + 1;
  ::posix_spawn_file_actions_adddup2(&actions, file->get(), spare);
  ::posix_spawn_file_actions_adddup2(&actions, report.get(), spare + 1);
  ::posix_spawn_file_actions_adddup2(&actions, spare, kOptionsDescriptor);
  ::posix_spawn_file_actions_adddup2(&actions, spare + 1, kResultDescriptor);
  ::posix_spawn_file_actions_addclose(&actions, spare);
  ::posix_spawn_file_actions_addclose(&actions, spare + 1);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, defaults;
  sigemptyset(&none);
  sigfillset(&defaults);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &defaults);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::string name = "caisson-server", word(kTerminalWord);
  char* const arguments[] = {name.data(), word.data(), nullptr};
  const int problem = ::posix_spawn(&terminal.pid_, sys::kOwnProgram, &actions, &attributes, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  if (problem != 0) return std::unexpected(sysError(Stage::launch, "posix_spawn", "terminal", problem));
  return terminal;
}

Terminal::~Terminal() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);  // its supervisor ends the command then
  ::waitpid(pid_, nullptr, 0);
}

std::string Terminal::finish() {
  master_.reset();
  std::string text;
  pollfd ready{result_.get(), POLLIN, 0};
  if (::poll(&ready, 1, 10'000) == 1) text = readToEnd(result_.get());
  for (int tries = 0; tries < 1000; ++tries) {
    if (::waitpid(pid_, nullptr, WNOHANG) != 0) {
      pid_ = -1;
      break;
    }
    if (tries == 500) ::kill(pid_, SIGKILL);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return text;
}

void resizeTerminal(int descriptor, std::uint16_t rows, std::uint16_t columns) {
  const winsize size{.ws_row = rows, .ws_col = columns, .ws_xpixel = 0, .ws_ypixel = 0};
  ::ioctl(descriptor, TIOCSWINSZ, &size);
}

int terminalMain() {
  ::ioctl(0, TIOCSCTTY, 0);  // so that a resize sends SIGWINCH, and the end of the client SIGHUP
  const auto options = parseJson(readToEnd(kOptionsDescriptor));
  ::close(kOptionsDescriptor);
  ::fcntl(kResultDescriptor, F_SETFD, FD_CLOEXEC);
  if (!options) return 125;
  ExecRequest request{.out = StreamMode::relay,
                      .err = StreamMode::relay,
                      .relay_stdin = true,
                      .interactive = true,
                      .forward_signals = true};
  request.ask_for_hosts = false;  // the person at this terminal is a client, not the owner
  if (const Json* command = find(*options, "command")) request.command = command->get<std::vector<std::string>>();
  if (const Json* variables = findObject(*options, "environment"))
    request.environment = variables->get<std::map<std::string, std::string>>();
  request.working_directory = textAt(*options, "directory").value_or("");
  if (const Json* timeout = find(*options, "timeout")) request.timeout_seconds = timeout->get<double>();
  auto store = SessionStore::open(sys::kOwnProgram);
  auto result = store ? store->exec(textAt(*options, "sandbox").value_or(""), request) : std::unexpected(store.error());
  const std::string text =
      result ? renderResult(*result)
             : writeJson({{"outcome", "setup_failed"}, {"error", {{"reason", result.error().message()}}}});
  static_cast<void>(::write(kResultDescriptor, text.data(), text.size()));
  return result ? exitStatus(*result) : 125;
}

}  // namespace caisson::service
