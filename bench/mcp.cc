// How many small commands per second `caisson mcp` runs for one client over stdio, with several calls in flight.
//
//   bench/mcp --caisson build/caisson [--calls 4000] [--in-flight 8] [--sandboxes 1] [--command true] [--rounds 3]
//
// The client does as little as possible: requests are prepared texts, responses are only checked for their id and exit
// code. It uses about a hundredth of the CPU time; the rest is the server, the sandbox and the command.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "process.h"
#include "scratch.h"
#include "statistics.h"

namespace bench {
namespace {

struct Options {
  std::string caisson = "build/caisson", command = "true";
  unsigned calls = 4000, in_flight = 8, sandboxes = 1, rounds = 3;
};

[[noreturn]] void fatal(const std::string& why) {
  std::fprintf(stderr, "bench mcp: %s\n", why.c_str());
  std::exit(1);
}

class Server {
 public:
  Server(const std::string& caisson, const std::string& state) {
    int in[2];
    int out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) fatal("pipe2");
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    ::posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    const std::string home = "CAISSON_HOME=" + state;
    std::vector<std::string> environment{home, "CAISSON_LOG=error", "PATH=/usr/bin:/bin"};
    std::vector<std::string> words{caisson, "mcp"};
    std::vector<char*> argv;
    std::vector<char*> envp;
    for (std::string& word : words) argv.push_back(word.data());
    for (std::string& variable : environment) envp.push_back(variable.data());
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    if (::posix_spawn(&pid_, caisson.c_str(), &actions, nullptr, argv.data(), envp.data()) != 0) fatal("no " + caisson);
    ::posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  ~Server() {
    ::close(input_);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    ::close(output_);
  }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void send(const std::string& line) const {
    for (std::size_t done = 0; done < line.size();) {
      const ssize_t count = ::write(input_, line.data() + done, line.size() - done);
      if (count <= 0) fatal("the server closed its input");
      done += static_cast<std::size_t>(count);
    }
  }
  std::string line() {
    for (;;) {
      if (const std::size_t end = buffer_.find('\n'); end != std::string::npos) {
        std::string text = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return text;
      }
      char piece[65536];
      const ssize_t count = ::read(output_, piece, sizeof(piece));
      if (count <= 0) fatal("the server exited");
      buffer_.append(piece, static_cast<std::size_t>(count));
    }
  }

 private:
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1;
  std::string buffer_;
};

std::string request(unsigned id, const std::string& tool, const std::string& arguments) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"tools/call","params":{"name":")" + tool +
         R"(","arguments":{)" + arguments + R"(},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)" +
         R"("io.modelcontextprotocol/clientCapabilities":{}}}})" + "\n";
}

std::string textAfter(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  if (at == std::string::npos) fatal("no " + key + " in " + text.substr(0, 500));
  return text.substr(at + key.size(), text.find('"', at + key.size()) - at - key.size());
}

unsigned idOf(const std::string& line) {
  const std::size_t at = line.find("\"id\":");
  if (at == std::string::npos) fatal("a response without id: " + line.substr(0, 500));
  return static_cast<unsigned>(std::atoi(line.c_str() + at + 5));
}

struct Round {
  double per_second = 0;
  Summary latency;
};

Round measure(Server& server, const Options& options, const std::vector<std::string>& sandboxes) {
  std::vector<double> began(options.calls + 1);
  std::vector<double> took;
  unsigned sent = 0;
  const auto next = [&] {
    const std::string& sandbox = sandboxes[sent % sandboxes.size()];
    ++sent;
    began[sent] = nowMs();
    server.send(
        request(sent, "sandbox_execute", R"("sandbox_id":")" + sandbox + R"(","command":")" + options.command + "\""));
  };
  const double begin = nowMs();
  while (sent < std::min(options.calls, options.in_flight)) next();
  while (took.size() < options.calls) {
    const std::string answer = server.line();
    if (answer.find("\"exit_code\":0") == std::string::npos) fatal("a call failed: " + answer.substr(0, 500));
    took.push_back(nowMs() - began[idOf(answer)]);
    if (sent < options.calls) next();
  }
  return {options.calls / (nowMs() - begin) * 1e3, summarize(took)};
}

Options read(int count, char** words) {
  Options options;
  for (int at = 1; at + 1 < count; at += 2) {
    const std::string name = words[at];
    const std::string value = words[at + 1];
    const auto number = [&] { return static_cast<unsigned>(std::max(1, std::atoi(value.c_str()))); };
    if (name == "--caisson") {
      options.caisson = value;
    } else if (name == "--command") {
      options.command = value;
    } else if (name == "--calls") {
      options.calls = number();
    } else if (name == "--in-flight") {
      options.in_flight = number();
    } else if (name == "--sandboxes") {
      options.sandboxes = number();
    } else if (name == "--rounds") {
      options.rounds = number();
    } else {
      fatal("unknown option " + name);
    }
  }
  return options;
}

int run(const Options& options) {
  auto scratch = Scratch::make();
  if (!scratch) fatal(scratch.error());
  std::printf("%u processors, %.0f %% of them busy with other programs\n", std::thread::hardware_concurrency(),
              100 * busyElsewhere());
  std::vector<double> rates;
  {
    Server server(options.caisson, scratch->path("state"));
    std::vector<std::string> sandboxes;
    for (unsigned i = 0; i < options.sandboxes; ++i) {
      server.send(request(i + 1, "sandbox_create", R"("empty":true)"));
      sandboxes.push_back(textAfter(server.line(), "\"sandbox_id\":\""));
    }
    Options warm = options;
    warm.calls = 200;
    measure(server, warm, sandboxes);
    for (unsigned round = 0; round < options.rounds; ++round) {
      const Round result = measure(server, options, sandboxes);
      rates.push_back(result.per_second);
      std::printf("%u calls of `%s`, %u in flight, %u sandboxes: %.0f calls/s, median %.2f ms, p99 %.2f ms\n",
                  options.calls, options.command.c_str(), options.in_flight, options.sandboxes, result.per_second,
                  result.latency.median, result.latency.p99);
      std::fflush(stdout);
    }
  }
  std::printf("median of %zu rounds: %.0f calls/s (target: 500)\n", rates.size(), median(rates));
  return 0;
}

}  // namespace
}  // namespace bench

int main(int count, char** words) { return bench::run(bench::read(count, words)); }
