// Standard input, output and error: byte-exact, separate, in order, bounded.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>

#include "functional/sandbox.h"
#include "functional/terminal.h"
#include "support/conforms.h"
#include "support/environment.h"
#include "support/processes.h"

namespace caisson::test {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;

class Streams : public SandboxTest {};

/// Bytes of every value, without a period, so that a lost or doubled block is found.
std::string noise(std::size_t size) {
  std::string bytes(size, '\0');
  std::uint64_t state = 0x9E3779B97F4A7C15;
  for (char& byte : bytes) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    byte = static_cast<char>(state >> 56);
  }
  return bytes;
}

TEST_F(Streams, AreKeptApart) {
  CONFORMS("R-PROCESS-15");
  const RunOutput output = script("for i in 1 2 3; do echo out$i; echo err$i >&2; done");
  EXPECT_EQ(output.out, "out1\nout2\nout3\n");
  EXPECT_EQ(output.err, "err1\nerr2\nerr3\n");
}

/// The flags are of the open file, which programs of the caller share.
TEST_F(Streams, KeepTheFlagsOfTheCallersPipe) {
  requireOrSkip(hasProgram("python3"), "no python3");
  const RunOutput output = onHost(
      R"(("$CAISSON" run -- python3 -c 'import os; os.set_blocking(1, False); print("inside")' && python3 -c 'import os, sys; print(os.get_blocking(1), file=sys.stderr)') | cat)");
  EXPECT_EQ(output.out, "inside\n") << output.describe();
  EXPECT_EQ(output.err, "True\n") << output.describe();
}

TEST_F(Streams, CannotOverwriteALogThatTheCallerAppendsTo) {
  requireOrSkip(hasProgram("python3"), "no python3");
  const RunOutput output = onHost(
      R"(log=$(mktemp); echo "line of the host" > $log; "$CAISSON" run -- python3 -c '
import fcntl, os
try:
    fcntl.fcntl(1, fcntl.F_SETFL, fcntl.fcntl(1, fcntl.F_GETFL) & ~os.O_APPEND)
    os.lseek(1, 0, os.SEEK_SET)
except OSError: pass
print("x" * 20)' >> $log; cat $log; rm $log)");
  EXPECT_EQ(output.out, "line of the host\n" + std::string(20, 'x') + "\n") << output.describe();
}

/// The user reads nothing: the terminal is full, and the program writes until a limit ends it.
TEST_F(Streams, UnreadTerminalDoesNotDelayTheTimeLimit) {
  const std::string marker = "unread-" + std::to_string(::getpid());
  const Terminal terminal(
      {"sh", "-c", "exec \"$0\" run --timeout 2s -- yes \"$1\" < /dev/null", caissonBinary(), marker},
      workspace.path());
  ASSERT_TRUE(eventually([&] { return liveProcesses(marker).size() > 1; }));
  EXPECT_TRUE(eventually([&] { return liveProcesses(marker).size() <= 1; }, seconds(6)))
      << "more than caisson is there, which waits for the reader";
}

TEST_F(Streams, KeepTheirOrderWhenTheCallerJoinsThem) {
  const RunOutput output = onHost(
      R"("$CAISSON" run -- sh -c 'for i in 1 2 3; do echo out$i; sleep 0.1; echo err$i >&2; sleep 0.1; done' 2>&1)");
  EXPECT_EQ(output.out, "out1\nerr1\nout2\nerr2\nout3\nerr3\n");
}

TEST_F(Streams, FiftyMebibytesGoThroughUnchanged) {
  const std::string data = noise(50 << 20);
  const RunOutput output = run({"--output-limit", "64M"}, {"cat"}, {.stdin_data = data, .timeout = seconds(90)});
  EXPECT_EQ(output.exit_status, 0) << output.err;
  EXPECT_TRUE(output.out == data) << output.out.size() << " bytes came back. " << output.err.substr(0, 1000);
}

TEST_F(Streams, InputReachesTheProgramByteByByte) {
  const std::string data = noise(3 << 20);
  workspace.write("data", data);
  const RunOutput output =
      onHost(R"(sha256sum < data; "$CAISSON" run -- sha256sum < data; cat data | "$CAISSON" run -- sha256sum)");
  ASSERT_EQ(output.out.size(), 3 * 68U) << output.describe();
  EXPECT_EQ(output.out.substr(0, 68), output.out.substr(68, 68));
  EXPECT_EQ(output.out.substr(0, 68), output.out.substr(136, 68));
}

TEST_F(Streams, UnreadInputIsLeftForTheNextProgram) {
  CONFORMS("R-PROCESS-19");
  const RunOutput loop = onHost(R"(printf 'a\nb\nc\n' | while read x; do "$CAISSON" run -q -- echo "got $x"; done)");
  EXPECT_EQ(loop.out, "got a\ngot b\ngot c\n") << loop.describe();
  const RunOutput file = onHost(R"(printf '1\n2\n' > lines; ("$CAISSON" run -q -- true; cat) < lines)");
  EXPECT_EQ(file.out, "1\n2\n") << file.describe();
  const RunOutput part = onHost(R"(("$CAISSON" run -q -- sh -c 'read x; echo "first $x"'; cat) < lines)");
  EXPECT_EQ(part.out, "first 1\n2\n") << part.describe();
}

TEST_F(Streams, NoInputLeavesTheCallersUnread) {
  const RunOutput output = onHost(R"(printf '1\n' | ("$CAISSON" run -q -n -- cat; cat))");
  EXPECT_EQ(output.out, "1\n") << output.describe();
}

TEST_F(Streams, OnlyFilesPipesAndUnixSocketsAreHandedOver) {
  workspace.write("kinds.py", R"(
import os, socket, subprocess, sys
def kind(descriptor):
    command = [os.environ["CAISSON"], "run", "-q", "--", "stat", "-L", "-c", "%F", "/proc/self/fd/0"]
    return subprocess.run(command, stdin=descriptor, capture_output=True, text=True).stdout.strip()
listener = socket.create_server(("127.0.0.1", 0))
connected = socket.create_connection(listener.getsockname())
ours, theirs = socket.socketpair()
datagram, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
print("tcp:", kind(connected))
print("stream:", kind(theirs))
print("datagram:", kind(datagram))
print("directory:", kind(os.open("/etc", os.O_RDONLY)))
print("path:", kind(os.open("/etc/passwd", os.O_PATH)))
print("file:", kind(os.open(__file__, os.O_RDONLY)))
)");
  EXPECT_EQ(onHost("python3 kinds.py").out,
            "tcp: fifo\nstream: socket\ndatagram: fifo\ndirectory: fifo\npath: fifo\nfile: regular file\n");
}

TEST_F(Streams, UncapturedOutputHasNoLimit) {
  CONFORMS("R-PROCESS-18");
  const RunOutput output = onHost(R"("$CAISSON" run -q -- head -c 11000000 /dev/zero > out; echo $?; stat -c %s out)");
  EXPECT_EQ(output.out, "0\n11000000\n") << output.describe();
  const RunOutput pipe = onHost(R"("$CAISSON" run -q -- head -c 11000000 /dev/zero | wc -c)");
  EXPECT_EQ(pipe.out, "11000000\n") << pipe.describe();
}

TEST_F(Streams, AWriteErrorIsAnError) {
  CONFORMS("R-PROCESS-18");
  const RunOutput direct = onHost(R"("$CAISSON" run -q -- echo hi > /dev/full; echo $?)");
  EXPECT_EQ(direct.out, "1\n") << direct.describe();
  const RunOutput relayed = onHost(R"("$CAISSON" run --output-limit 1M -- echo hi > /dev/full; echo $?)");
  EXPECT_EQ(relayed.out, "125\n") << relayed.describe();
  EXPECT_TRUE(contains(relayed.err, "No space left")) << relayed.err;
}

TEST_F(Streams, AnOutputFileCanBeReopened) {
  const RunOutput output =
      onHost(R"("$CAISSON" run -q -- sh -c 'echo a >> /dev/stdout; echo b >> /dev/stderr' > out 2> err; cat out err)");
  EXPECT_EQ(output.out, "a\nb\n") << output.describe();
}

TEST_F(Streams, EmptyInputIsEndOfFile) {
  EXPECT_EQ(run({}, {"wc", "-c"}).out, "0\n");
  EXPECT_EQ(onHost(R"("$CAISSON" run -- wc -c < /dev/null)").out, "0\n");
}

TEST_F(Streams, UnreadInputDoesNotBlock) {
  EXPECT_EQ(run({}, {"true"}, {.stdin_data = noise(4 << 20), .timeout = seconds(20)}).exit_status, 0);
  const RunOutput half = run({}, {"head", "-c", "10"}, {.stdin_data = noise(4 << 20), .timeout = seconds(20)});
  EXPECT_EQ(half.out.size(), 10U);
}

TEST_F(Streams, InputHeldOpenByTheCallerDoesNotKeepTheRunAlive) {
  const RunOutput output =
      onHost(R"(mkfifo held; exec 3<>held; "$CAISSON" run -- echo done <&3)", {.timeout = seconds(20)});
  EXPECT_EQ(output.out, "done\n") << output.describe();
  EXPECT_LT(output.duration, seconds(10));
}

TEST_F(Streams, OutputComesWhileTheProgramRuns) {
  const RunOutput output = onHost(
      R"("$CAISSON" run -- sh -c 'echo first; read line; echo "got $line"' \
          < <(while ! grep -q first out 2>/dev/null; do sleep 0.02; done; echo go) > out; cat out)",
      {.timeout = seconds(20)});
  EXPECT_EQ(output.out, "first\ngot go\n") << output.describe();
}

TEST_F(Streams, OutputIsCutAtTheLimitAndTheRestCounted) {
  CONFORMS("R-PROCESS-15");
  const RunOutput output = run({"--output-limit", "1M"}, {"head", "-c", "50M", "/dev/zero"});
  EXPECT_EQ(output.exit_status, 125) << "the program succeeded, but its output is not complete: " << output.err;
  EXPECT_EQ(output.out.size(), 1U << 20);
  EXPECT_TRUE(contains(output.err, std::to_string(49 << 20))) << output.err.substr(0, 500);

  const json result =
      run({"--json", "--output-limit", "1K"}, {"sh", "-c", "head -c 5000 /dev/zero >&2; echo out"}).json();
  EXPECT_EQ(result["stderr"].get<std::string>().size(), 1024U);
  EXPECT_EQ(result["truncated"]["stderr"], true);
  EXPECT_EQ(result["truncated"]["stdout"], false);
  EXPECT_EQ(result["truncated"]["stderr_dropped_bytes"], 5000 - 1024);
  EXPECT_EQ(result["stdout"], "out\n");
}

TEST_F(Streams, OutputOfExactlyTheLimitIsNotCut) {
  const json result = run({"--json", "--output-limit", "1000"}, {"head", "-c", "1000", "/dev/zero"}).json();
  EXPECT_EQ(result["truncated"]["stdout"], false);
  EXPECT_EQ(result["stdout"].get<std::string>().size(), 1000U);
}

TEST_F(Streams, AFloodEndsWithTheTimeoutAndKeepsItsBeginning) {
  CONFORMS("R-LIMIT-6");
  const RunOutput output = run({"--json", "--timeout", "1s", "--output-limit", "64K"}, {"sh", "-c", "yes & yes >&2"});
  const json result = output.json();
  EXPECT_EQ(output.exit_status, 124);
  EXPECT_EQ(result["limit"], "time");
  EXPECT_EQ(result["stdout"].get<std::string>().size(), 64U << 10);
  EXPECT_EQ(result["truncated"]["stderr"], true);
  EXPECT_LT(output.duration, seconds(15));
}

std::size_t peakMemoryKiB(pid_t pid) {
  const std::string status = readFile("/proc/" + std::to_string(pid) + "/status");
  const std::size_t field = status.find("VmHWM:");
  return field == std::string::npos ? 0 : std::stoul(status.substr(field + 6));
}

TEST_F(Streams, FloodDoesNotGrowTheMemoryOfCaisson) {
  CONFORMS("R-LIMIT-6");
  for (const std::string option : {"--json", "--quiet"}) {
    const BackgroundProgram flood({caissonBinary(), "run", option, "--timeout", "20s", "--", "cat", "/dev/zero"},
                                  {.cwd = workspace.path()});
    sleepFor(milliseconds(500));
    const std::size_t early = peakMemoryKiB(flood.pid());
    sleepFor(milliseconds(1200));
    const std::size_t late = peakMemoryKiB(flood.pid());
    ASSERT_GT(early, 0U);
    EXPECT_LT(late - early, 64U << 10) << option << ": " << early << " KiB, then " << late << " KiB";
  }
}

TEST_F(Streams, ASlowReaderGetsEverything) {
  const RunOutput output =
      onHost(R"("$CAISSON" run -- seq 1 20000 | (sleep 6; cat) | cmp - <(seq 1 20000) && echo same)");
  EXPECT_EQ(output.out, "same\n") << output.describe();
  EXPECT_EQ(output.err, "") << "as a pager would be, it was only slow";
}

TEST_F(Streams, AReaderThatGoesAwayEndsTheWriter) {
  const RunOutput output =
      onHost(R"("$CAISSON" run -q -- yes | head -n 1; echo ${PIPESTATUS[0]})", {.timeout = seconds(20)});
  EXPECT_EQ(output.out, "y\n141\n") << output.describe();
  const RunOutput errors = onHost(
      R"( { "$CAISSON" run -q -- sh -c 'yes >&2'; echo $? >status; } 2>&1 >/dev/null | head -n 1; sleep 0.3; cat status)",
      {.timeout = seconds(20)});
  EXPECT_EQ(errors.out, "y\n141\n") << errors.describe();
}

TEST_F(Streams, AProgramThatIgnoresSigpipeSurvivesItsReader) {
  const RunOutput output = onHost(
      R"("$CAISSON" run --workspace .:rw -- sh -c 'trap "" PIPE; echo line; sleep 0.3; echo again || :; echo finished > proof; exit 5' | head -n 1; )"
      R"(echo ${PIPESTATUS[0]}; cat proof)",
      {.timeout = seconds(20)});
  EXPECT_EQ(output.out, "line\n5\nfinished\n") << output.describe();
}

TEST_F(Streams, JsonToAReaderThatIsGoneIsAnErrorNotAHang) {
  const RunOutput output = onHost(R"({ sleep 0.2; "$CAISSON" run --json -- true; echo $? >&2; } | true; sleep 0.5)",
                                  {.timeout = seconds(20)});
  EXPECT_FALSE(output.timed_out);
}

TEST_F(Streams, ClosedStreamsInEveryCombinationWork) {
  for (unsigned closed = 1; closed < 8; ++closed) {
    std::vector<int> descriptors;
    for (int fd = 0; fd < 3; ++fd) {
      if ((closed & (1U << fd)) != 0) descriptors.push_back(fd);
    }
    const RunOptions how{.timeout = seconds(6), .close = descriptors};
    const RunOutput output = script("echo out; echo err >&2; cat > /dev/null; exit 5", {}, how);
    EXPECT_EQ(output.exit_status, 5) << "closed: " << closed << output.describe();
    EXPECT_EQ(output.out, (closed & 2U) == 0 ? "out\n" : "") << "closed: " << closed;
    EXPECT_EQ(output.err, (closed & 4U) == 0 ? "err\n" : "") << "closed: " << closed;
    EXPECT_LT(output.duration, seconds(4)) << "closed: " << closed;
  }
}

TEST_F(Streams, ClosedStreamIsNotReplacedByAnInternalFile) {
  for (const std::vector<int>& descriptors : std::vector<std::vector<int>>{{0}, {1}, {2}, {0, 1, 2}}) {
    const std::string file = workspace / "result.json";
    const RunOutput output = run({"--result", file}, {"sh", "-c", "echo intruder; echo intruder >&2; exit 5"},
                                 {.timeout = seconds(20), .close = descriptors});
    EXPECT_EQ(output.exit_status, 5) << output.describe();
    EXPECT_EQ(json::parse(readFile(file), nullptr, false)["exit_code"], 5) << readFile(file);
  }
}

TEST_F(Streams, FilesPassedAsStreamsCannotBeReopenedForWriting) {
  CONFORMS("R-PROCESS-13");
  workspace.write("input", "original\n");
  const TempDir other;
  const RunOutput output =
      onHost("\"$CAISSON\" run --workspace " + other.path() +
             ":ro -- sh -c 'cat; echo changed > /proc/self/fd/0; echo changed > /dev/stdin' < input; cat input");
  EXPECT_TRUE(output.out.ends_with("original\n")) << output.describe();
  EXPECT_EQ(readFile(workspace / "input"), "original\n");
}

TEST_F(Streams, DevStdoutAndDevStderrWork) {
  const RunOutput output =
      script("echo a > /dev/stdout; echo b > /dev/stderr; cat /dev/stdin; cat /dev/fd/0", {}, {.stdin_data = "in\n"});
  EXPECT_EQ(output.out, "a\nin\n") << output.describe();
  EXPECT_EQ(output.err, "b\n");
}

}  // namespace
}  // namespace caisson::test
