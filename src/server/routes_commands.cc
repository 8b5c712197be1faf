// Commands: run, stream, background, reattach, input, signals, terminals.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>

#include "api/result_json.h"
#include "base/base64.h"
#include "base/text.h"
#include "server/app.h"
#include "server/describe.h"
#include "server/streams.h"
#include "service/terminal.h"

namespace caisson::server {
namespace {

using service::SandboxPointer;

constexpr double kDay = 24.0 * 3600;

constexpr Field kRunFields[] = {
    {.name = "command", .description = "A shell command line (sh -c). Either this or args."},
    {.name = "args", .type = FieldType::texts, .description = "A program and its arguments, run without a shell."},
    {.name = "cwd", .description = "Directory to run in; the workspace by default."},
    {.name = "environment", .type = FieldType::variables, .description = "Additional variables."},
    {.name = "stdin", .description = "Standard input."},
    {.name = "stdin_encoding", .description = "utf-8 or base64.", .choices = "utf-8,base64"},
    {.name = "command_timeout",
     .type = FieldType::number,
     .description = "Seconds after which the command is killed. Default: the sandbox's; none in the background.",
     .least = 0.001,
     .most = kDay},
    {.name = "request_timeout",
     .type = FieldType::number,
     .description = "Seconds after which the response is sent even if the command still runs (202).",
     .least = 0,
     .most = 3600},
    {.name = "mode",
     .description = "wait (default): respond with the result. background: respond at once. stream: respond with "
                    "server-sent events.",
     .choices = "wait,background,stream"},
    {.name = "keep_stdin", .type = FieldType::boolean, .description = "In the background: leave standard input open."},
    {.name = "output_limit",
     .type = FieldType::integer,
     .description = "Bytes of each stream in the result of mode wait.",
     .least = 0,
     .most = 16 << 20},
};
constexpr Field kOutputQuery[] = {
    {.name = "stdout_offset", .type = FieldType::integer, .description = "Begin at this byte of standard output."},
    {.name = "stderr_offset", .type = FieldType::integer, .description = "Begin at this byte of standard error."},
    {.name = "follow", .type = FieldType::boolean, .description = "Wait for more until the command ends (default)."},
};
constexpr Field kStdinFields[] = {
    {.name = "data", .description = "What the command gets."},
    {.name = "encoding", .description = "utf-8 or base64.", .choices = "utf-8,base64"},
    {.name = "close", .type = FieldType::boolean, .description = "Close standard input afterwards."},
};
constexpr Field kSignalFields[] = {
    {.name = "signal", .required = true, .description = "For example TERM, INT or KILL, or a number."}};
constexpr Field kPtyQuery[] = {
    {.name = "command", .description = "A shell command line; a shell by default."},
    {.name = "cwd", .description = "Directory to run in."},
    {.name = "rows", .type = FieldType::integer, .description = "Height; 24 by default.", .least = 1, .most = 1000},
    {.name = "columns", .type = FieldType::integer, .description = "Width; 80 by default.", .least = 1, .most = 1000},
    {.name = "command_timeout",
     .type = FieldType::number,
     .description = "Seconds after which it is killed.",
     .least = 0.001,
     .most = kDay},
};

std::optional<std::string> decoded(const std::string& data, const std::string& encoding) {
  return encoding == "base64" ? decodeBase64(data) : std::optional(data);
}

/// The request, or what is wrong with it.
Result<ExecRequest> readRequest(const Call& call, const service::SandboxRecord& record) {
  const auto invalid = [](std::string reason) {
    return std::unexpected(Error{.stage = Stage::usage, .call = "run", .reason = std::move(reason)});
  };
  if (call.has("command") == call.has("args")) return invalid("give either command or args");
  ExecRequest request;
  request.command = call.has("args") ? call.texts("args") : std::vector<std::string>{"sh", "-c", call.text("command")};
  if (request.command.empty() || request.command.front().empty()) return invalid("args is empty");
  request.working_directory = call.text("cwd");
  if (const Json* variables = findObject(call.body, "environment"))
    request.environment = variables->get<std::map<std::string, std::string>>();
  for (const auto& [name, value] : request.environment)
    if (name.empty() || name.find('=') != std::string::npos) return invalid("invalid name of a variable");
  auto input = decoded(call.text("stdin"), call.text("stdin_encoding"));
  if (!input) return invalid("stdin is not valid base64");
  request.input = *std::move(input);
  const bool waits = call.text("mode").empty() || call.text("mode") == "wait";
  if (call.has("command_timeout")) {
    request.timeout_seconds = call.number("command_timeout", 0);
  } else if (call.text("mode") != "background") {
    request.timeout_seconds = record.command_timeout;
  }
  if (call.has("output_limit")) request.output_limit = static_cast<std::uint64_t>(call.number("output_limit", 0));
  request.keep_input = call.flag("keep_stdin");
  if (request.keep_input && waits) return invalid("keep_stdin needs mode background or stream");
  return request;
}

void publishEnd(Call& call, const service::Sandbox& sandbox, const RunResult& result) {
  call.app.publish("command.ended", sandbox,
                   {{"outcome", name(result.outcome)}, {"exit_code", result.exit_code}, {"limit", name(result.limit)}});
}

/// The output of a command, as far as the caller's memory allows.
class CapturedOutput {
 public:
  CapturedOutput(ExecRequest& request, service::ByteBudget::Hold& bytes) : bytes_(bytes) {
    request.out = request.err = StreamMode::discard;
    request.on_output = [this](OutputStreamKind stream, std::string_view piece) {
      append(stream == OutputStreamKind::out ? out_ : err_, piece);
    };
  }
  CapturedOutput(const CapturedOutput&) = delete;
  CapturedOutput& operator=(const CapturedOutput&) = delete;

  void moveTo(RunResult& result) {
    move(out_, result.out);
    move(err_, result.err);
  }

 private:
  struct Part {
    std::string data;
    std::uint64_t counted = kSmallBody, dropped = 0;
  };

  void append(Part& part, std::string_view piece) {
    constexpr std::uint64_t kStep = std::uint64_t{1} << 20U;
    if (part.dropped == 0 && part.data.size() + piece.size() > part.counted) {
      const std::uint64_t more = std::max<std::uint64_t>(kStep, part.data.size() + piece.size() - part.counted);
      if (bytes_.add(more)) part.counted += more;
    }
    const std::size_t fits =
        part.dropped > 0 ? 0 : std::min<std::size_t>(piece.size(), part.counted - part.data.size());
    part.data.append(piece.substr(0, fits));
    part.dropped += piece.size() - fits;
  }

  /// The size in the response: escaped, or in base64.
  static std::uint64_t sizeInJson(std::string_view data) {
    std::uint64_t size = 0, high = 0;
    for (const char c : data) {
      const auto byte = static_cast<unsigned char>(c);
      high += byte >= 0x80 ? 1 : 0;
      size += byte < 0x20 || byte == 0x7f ? 6 : byte == '"' || byte == '\\' ? 2 : 1;
    }
    return high > 0 ? std::max<std::uint64_t>(size, data.size() * 4 / 3 + 4) : size;
  }

  void move(Part& part, Stream& stream) {
    // The response contains the output a second time, in up to six times the size.
    for (;;) {
      const std::uint64_t size = sizeInJson(part.data);
      if (size <= part.counted) break;
      if (bytes_.add(size - part.counted)) break;
      const std::size_t half = part.data.size() / 2;
      part.dropped += part.data.size() - half;
      part.data.resize(half);
    }
    stream.data = std::move(part.data);
    stream.dropped += part.dropped;
    stream.truncated = stream.truncated || part.dropped > 0;
  }

  service::ByteBudget::Hold& bytes_;
  Part out_, err_;
};

http::Response runAndWait(Call& call, const SandboxPointer& sandbox, ExecRequest request) {
  request.cancel_descriptor = call.request.cancel_descriptor;
  std::optional<CapturedOutput> output;
  if (call.bytes) output.emplace(request, *call.bytes);
  auto result = call.app.sandboxes().with(*sandbox, [&](Session& session) {
    auto ran = session.exec(request);
    call.started = ran || ran.error().code == ErrorCode::command_lost;
    return ran;
  });
  if (!result) return problemOf(result.error());
  if (output) output->moveTo(*result);
  call.counted = true;
  publishEnd(call, *sandbox, *result);
  http::Response response{.body = renderResult(*result) + "\n"};
  response.headers = {{"Content-Type", "application/json"}, {"Cache-Control", "no-store"}};
  return response;
}

http::Response runCommand(Call& call) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  auto request = readRequest(call, (*sandbox)->record());
  if (!request) return problemOf(request.error());
  const std::string mode = call.text("mode");
  if ((mode.empty() || mode == "wait") && !call.has("request_timeout"))
    return runAndWait(call, *sandbox, *std::move(request));
  std::shared_ptr<void> slot;
  if (mode == "stream" && !(slot = call.app.takeSlot(call.caller, App::Lasting::stream))) return tooMany();
  const auto number = call.app.sandboxes().with(**sandbox, [&](Session& session) { return session.start(*request); });
  if (!number) return problemOf(number.error());
  call.started = true;
  call.app.publish("command.started", **sandbox, {{"command_id", commandId(*number)}});
  if (mode == "stream") {
    std::string first = sseEvent("started", "0-0", {{"command_id", commandId(*number)}});
    return streamResponse(outputSource(
        {.app = call.app, .sandbox = *sandbox, .command = *number, .slot = std::move(slot)}, true, std::move(first)));
  }
  const double patience = mode == "background" ? 0 : call.number("request_timeout", 0);
  const auto info =
      call.app.sandboxes().with(**sandbox, [&](Session& session) { return session.wait(*number, patience); });
  if (!info) return problemOf(info.error());
  http::Response response = jsonResponse(info->running ? 202 : 200, describeCommand(*info));
  response.headers.emplace_back("Location", "/v1/sandboxes/" + call.id() + "/commands/" + commandId(*number));
  return response;
}

http::Response listCommands(Call& call) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  const auto numbers = call.app.sandboxes().commandNumbers(**sandbox);
  if (!numbers) return problemOf(numbers.error());
  JsonList list("commands");
  bool truncated = false;
  // One at a time: each may have 1 MiB of arguments.
  const auto read = call.app.sandboxes().with(**sandbox, [&](Session& session) -> Result<void> {
    for (const std::uint32_t number : *numbers) {
      auto info = session.status(number);
      if (!info) continue;  // removed meanwhile
      truncated = !list.add(describeListedCommand(*std::move(info)));
      if (truncated) break;
    }
    return {};
  });
  if (!read) return problemOf(read.error());
  return list.finish(truncated ? R"("truncated":true)" : R"("truncated":false)");
}

http::Response noCommand() { return problem(404, "not_found", "no such command", "list them with GET .../commands"); }

/// Calls `use` with the sandbox and the number of an existing command.
template <class Use>
http::Response onCommand(Call& call, Use use) {
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  const auto number = commandNumber(call.path[1]);
  if (!number) return noCommand();
  const auto info = call.app.sandboxes().with(**sandbox, [&](Session& session) { return session.status(*number); });
  if (!info) return noCommand();
  return use(*sandbox, *info);
}

http::Response getCommand(Call& call) {
  return onCommand(
      call, [](const SandboxPointer&, const ExecInfo& info) { return jsonResponse(200, describeCommand(info)); });
}

http::Response getOutput(Call& call) {
  return onCommand(call, [&](const SandboxPointer& sandbox, const ExecInfo& info) {
    std::uint64_t out = call.queryNumber("stdout_offset", 0), err = call.queryNumber("stderr_offset", 0);
    if (const std::string* last = call.request.head.header("last-event-id")) {
      const std::size_t dash = last->find('-');
      const char* const end = last->data() + last->size();
      if (dash == std::string::npos || std::from_chars(last->data(), end, out).ptr != last->data() + dash ||
          std::from_chars(last->data() + dash + 1, end, err).ptr != end)
        return problem(400, "invalid_header", "Last-Event-ID is not one of this stream");
    }
    auto slot = call.app.takeSlot(call.caller, App::Lasting::stream);
    if (!slot) return tooMany();
    OutputOptions options{
        .app = call.app, .sandbox = sandbox, .command = info.exec, .out = out, .err = err, .slot = std::move(slot)};
    return streamResponse(outputSource(std::move(options), call.queryFlag("follow", true), ""));
  });
}

http::Response writeStdin(Call& call) {
  return onCommand(call, [&](const SandboxPointer& sandbox, const ExecInfo& info) {
    const auto data = decoded(call.text("data"), call.text("encoding"));
    if (!data) return problem(400, "invalid_body", "data is not valid base64");
    const auto fed = call.app.sandboxes().with(
        *sandbox, [&](Session& session) { return session.feed(info.exec, *data, call.flag("close")); });
    return fed ? http::Response{.status = 204} : problemOf(fed.error());
  });
}

std::optional<int> signalNumber(std::string_view text) {
  int number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc() && end == text.data() + text.size())
    return number >= 1 && number <= 64 ? std::optional(number) : std::nullopt;
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (int one = 1; one < 32; ++one) {
    const char* const known = ::sigabbrev_np(one);
    if (known != nullptr && text == known) return one;
  }
  return std::nullopt;
}

http::Response sendSignal(Call& call) {
  return onCommand(call, [&](const SandboxPointer& sandbox, const ExecInfo& info) {
    const auto number = signalNumber(call.text("signal"));
    if (!number)
      return problem(400, "invalid_body", "unknown signal", "use a name such as TERM, or a number from 1 to 64");
    const auto sent =
        call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.signal(info.exec, *number); });
    return sent ? http::Response{.status = 204} : problemOf(sent.error());
  });
}

http::Response stopCommand(Call& call) {
  return onCommand(call, [&](const SandboxPointer& sandbox, const ExecInfo& info) {
    const auto stopped = call.app.sandboxes().with(*sandbox, [&](Session& session) { return session.stop(info.exec); });
    return stopped ? http::Response{.status = 204} : problemOf(stopped.error());
  });
}

/// A text message of the client: {"rows": 40, "columns": 120}.
void resize(int descriptor, std::string_view text) {
  const auto value = parseJson(text, {.bytes = 4096});
  if (!value) return;
  const auto rows = integerAt(*value, "rows").value_or(0), columns = integerAt(*value, "columns").value_or(0);
  if (rows < 1 || rows > 1000 || columns < 1 || columns > 1000) return;
  service::resizeTerminal(descriptor, static_cast<std::uint16_t>(rows), static_cast<std::uint16_t>(columns));
}

http::Response openTerminal(Call& call) {
  if (!call.request.head.upgrades) {
    http::Response response = problem(426, "upgrade_required", "a terminal is a WebSocket");
    response.headers.emplace_back("Upgrade", "websocket");
    return response;
  }
  auto sandbox = call.app.sandboxes().find(call.caller, call.id());
  if (!sandbox) return problemOf(sandbox.error());
  service::TerminalOptions options{.sandbox = (*sandbox)->id()};
  const std::string command = call.query("command");
  options.request.command =
      command.empty() ? std::vector<std::string>{"sh", "-c", "command -v bash >/dev/null && exec bash || exec sh"}
                      : std::vector<std::string>{"sh", "-c", command};
  options.request.working_directory = call.query("cwd");
  options.request.environment = {{"TERM", "xterm-256color"}};
  if (const std::string text = call.query("command_timeout"); !text.empty())
    options.request.timeout_seconds = std::atof(text.c_str());
  options.rows = static_cast<std::uint16_t>(call.queryNumber("rows", 24));
  options.columns = static_cast<std::uint16_t>(call.queryNumber("columns", 80));
  auto slot = call.app.takeSlot(call.caller, App::Lasting::terminal);
  if (!slot) return tooMany();
  auto started = service::Terminal::start(options);
  if (!started) return problemOf(started.error());
  auto terminal = std::make_shared<service::Terminal>(*std::move(started));
  const int descriptor = terminal->descriptor();
  call.app.publish("terminal.opened", **sandbox, Json::object());
  http::SocketBody body{.descriptor = terminal->takeDescriptor()};
  body.on_text = [descriptor](std::string_view text) { resize(descriptor, text); };
  body.on_end = [terminal, slot] { return terminal->finish(); };
  return {.status = 101, .body = std::move(body)};
}

constexpr std::uint64_t kMaxInput = std::uint64_t{8} << 20U;

constexpr Route kCommandRoutes[] = {
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/commands",
     .operation = "runCommand",
     .tag = "commands",
     .summary = "Run a command",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kRunFields,
     .result = "CommandResult",
     .lane = http::Lane::command,
     .idempotent_key = true,
     .body_limit = kMaxInput,
     .perform = runCommand},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/commands",
     .operation = "listCommands",
     .tag = "commands",
     .summary = "List commands of modes background and stream",
     .result = "CommandList",
     .perform = listCommands},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/commands/{command}",
     .operation = "getCommand",
     .tag = "commands",
     .summary = "The state of one command",
     .result = "Command",
     .perform = getCommand},
    {.method = "DELETE",
     .pattern = "/v1/sandboxes/{id}/commands/{command}",
     .operation = "stopCommand",
     .tag = "commands",
     .summary = "Kill a command and everything it started",
     .access = Access::exec,
     .status = 204,
     .lane = http::Lane::control,
     .perform = stopCommand},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/commands/{command}/output",
     .operation = "streamOutput",
     .tag = "commands",
     .summary = "Output as server-sent events, from any offset on",
     .query = kOutputQuery,
     .content_type = "text/event-stream",
     .perform = getOutput},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/commands/{command}/stdin",
     .operation = "writeStdin",
     .tag = "commands",
     .summary = "Write to standard input",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kStdinFields,
     .status = 204,
     .lane = http::Lane::transfer,
     .body_limit = kMaxInput,
     .perform = writeStdin},
    {.method = "POST",
     .pattern = "/v1/sandboxes/{id}/commands/{command}/signal",
     .operation = "sendSignal",
     .tag = "commands",
     .summary = "Send a signal",
     .access = Access::exec,
     .body = BodyKind::json,
     .fields = kSignalFields,
     .status = 204,
     .lane = http::Lane::control,
     .perform = sendSignal},
    {.method = "GET",
     .pattern = "/v1/sandboxes/{id}/pty",
     .operation = "openTerminal",
     .tag = "commands",
     .summary = "A terminal as a WebSocket: binary messages are its bytes, text messages resize it",
     .access = Access::exec,
     .query = kPtyQuery,
     .status = 101,
     .lane = http::Lane::transfer,
     .perform = openTerminal},
};

}  // namespace

std::span<const Route> commandRoutes() { return kCommandRoutes; }

}  // namespace caisson::server
