#include "mcp_client.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <stdexcept>
#include <thread>

#include "support/environment.h"

namespace caisson::test {

using Clock = std::chrono::steady_clock;

McpClient::McpClient(std::vector<std::string> arguments, const std::map<std::string, std::string>& environment,
                     Json capabilities, const std::vector<std::string>& wrapper)
    : capabilities_(std::move(capabilities)) {
  std::array<int, 2> in{};
  std::array<int, 2> out{};
  if (::pipe2(in.data(), O_CLOEXEC) != 0 || ::pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
  arguments.insert(arguments.begin(), {caissonBinary(), "mcp"});
  arguments.insert(arguments.begin(), wrapper.begin(), wrapper.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  std::vector<std::string> variables;
  for (const auto& [name, value] : environment) variables.push_back(name + "=" + value);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!environment.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  std::vector<char*> envp;
  for (std::string& variable : variables) envp.push_back(variable.data());
  envp.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  const int problem = ::posix_spawn(&pid_, argv[0], &actions, nullptr, argv.data(), envp.data());
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(in[0]);
  ::close(out[1]);
  input_ = in[1];
  output_ = out[0];
  if (problem != 0) throw std::runtime_error("could not start caisson mcp");
  std::signal(SIGPIPE, SIG_IGN);
}

McpClient::~McpClient() {
  closeInput();
  ::close(output_);
  if (pid_ > 0 && wait(std::chrono::seconds(15)) == -1) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void McpClient::neverWait() const { ::fcntl(input_, F_SETFL, O_NONBLOCK); }

void McpClient::sendLine(const std::string& line) const {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = ::write(input_, text.data() + done, text.size() - done);
    if (count <= 0) return;
    done += static_cast<std::size_t>(count);
  }
}

int McpClient::send(const std::string& method, Json params) {
  params["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2026-07-28";
  params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = capabilities_;
  sendLine(Json{{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", std::move(params)}}.dump());
  return last_id_;
}

void McpClient::notify(const std::string& method, const Json& params) const {
  sendLine(Json{{"jsonrpc", "2.0"}, {"method", method}, {"params", params}}.dump());
}

McpClient::Json McpClient::readMessage(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      Json message = Json::parse(buffer_.substr(0, end), nullptr, false);
      buffer_.erase(0, end + 1);
      if (message.is_discarded()) throw std::runtime_error("standard output carries something that is not a message");
      return message;
    }
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd ready{output_, POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left)) <= 0) return {};
    std::array<char, 65536> piece{};
    const ssize_t count = ::read(output_, piece.data(), piece.size());
    if (count <= 0) return {};
    buffer_.append(piece.data(), static_cast<std::size_t>(count));
  }
}

McpClient::Json McpClient::next(std::chrono::milliseconds timeout) {
  if (!kept_.empty()) {
    Json first = std::move(kept_.front());
    kept_.erase(kept_.begin());
    return first;
  }
  return readMessage(timeout);
}

McpClient::Json McpClient::answer(int id, std::chrono::seconds timeout) {
  const auto fits = [id](const Json& message) { return message.contains("id") && message["id"] == id; };
  for (auto place = kept_.begin(); place != kept_.end(); ++place) {
    if (!fits(*place)) continue;
    Json found = std::move(*place);
    kept_.erase(place);
    return found;
  }
  const auto deadline = Clock::now() + timeout;
  for (;;) {
    Json message = readMessage(std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()));
    if (message.is_null() || fits(message)) return message;
    kept_.push_back(std::move(message));
  }
}

McpClient::Json McpClient::call(const std::string& tool, Json arguments) {
  const Json message = request("tools/call", {{"name", tool}, {"arguments", std::move(arguments)}});
  return message.contains("result") ? message["result"] : message;
}

McpClient::Json McpClient::tool(const std::string& tool, Json arguments) {
  const Json result = call(tool, std::move(arguments));
  return result.contains("structuredContent") ? result["structuredContent"] : result;
}

void McpClient::closeInput() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void McpClient::signal(int number) const {
  if (pid_ > 0) ::kill(pid_, number);
}

int McpClient::wait(std::chrono::seconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (Clock::now() < deadline) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return -1;
}

}  // namespace caisson::test
