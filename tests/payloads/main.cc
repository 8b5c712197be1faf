#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <ctime>

#include "payload.h"

namespace payload {
namespace {

std::vector<Verb> allVerbs() {
  std::vector<Verb> all;
  for (const auto table : {namespaceVerbs, mountVerbs, processVerbs, kernelVerbs, socketVerbs, fileVerbs, plantingVerbs,
                           descriptorVerbs, identityVerbs, terminalVerbs, executionVerbs, abuseMemoryVerbs,
                           abuseObjectVerbs, abuseDiskVerbs, violationVerbs, siblingVerbs}) {
    for (const Verb& verb : table()) all.push_back(verb);
  }
  return all;
}

int usage() {
  std::puts("usage: payload VERB [ARGUMENT]...");
  for (const Verb& verb : allVerbs()) {
    std::printf("  %.*s %.*s\n", static_cast<int>(verb.name.size()), verb.name.data(),
                static_cast<int>(verb.arguments.size()), verb.arguments.data());
  }
  return kUsage;
}

}  // namespace

int done(std::string_view detail) {
  std::printf("done%s%.*s\n", detail.empty() ? "" : ": ", static_cast<int>(detail.size()), detail.data());
  return kDone;
}

int refused(std::string_view call, int error) {
  std::printf("refused: %.*s: %s\n", static_cast<int>(call.size()), call.data(), errorName(error).c_str());
  return kRefused;
}

int unavailable(std::string_view why) {
  std::printf("unavailable: %.*s\n", static_cast<int>(why.size()), why.data());
  return kUnavailable;
}

int report(std::string_view call, long result) { return result >= 0 ? done() : refused(call); }

std::string errorName(int error) {
  const char* name = strerrorname_np(error);
  return name != nullptr ? name : std::to_string(error);
}

std::string contentOf(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::string content;
  char buffer[4096];
  ssize_t count = 0;
  while ((count = read(fd, buffer, sizeof(buffer))) > 0) content.append(buffer, static_cast<std::size_t>(count));
  const int error = errno;
  close(fd);
  errno = count < 0 ? error : 0;
  return content;
}

void pauseFor(long milliseconds) {
  timespec time{milliseconds / 1000, milliseconds % 1000 * 1000000};
  nanosleep(&time, nullptr);
}

void waitForInitToSettle() { pauseFor(100); }

int perform(const Arguments& verb_and_arguments) {
  if (verb_and_arguments.empty()) return usage();
  for (const Verb& verb : allVerbs()) {
    if (verb.name != verb_and_arguments.front()) continue;
    const Arguments arguments(verb_and_arguments.begin() + 1, verb_and_arguments.end());
    return arguments.size() < verb.needed ? usage() : verb.attempt(arguments);
  }
  return usage();
}

}  // namespace payload

int main(int argc, char** argv) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  return payload::perform({argv + 1, argv + argc});
}
