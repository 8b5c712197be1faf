// ESCAPE: escape attempts, each against a harmless target that was planted for it.
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>

#include "sys/root_dir.h"
#include "verify/suite.h"

namespace caisson::verify {
namespace {

Verdict hostFileUnchanged(Context& context, const Observed& seen) {
  if (!seen.ran) return failed(seen.describe());
  const auto root = sys::RootDir::open(context.workspacePath());
  const auto text = root ? root->readFile("file", 4096) : Result<std::string>(std::unexpect, root.error());
  if (!text) return failed("the host's file is gone");
  return *text == context.secret() + "\n" ? passed() : failed("the host's file was changed");
}

Verdict abstractSocket(Context& context) {
  const sys::Fd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const std::string name = "caisson-verify-" + context.secret();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), std::min(name.size(), sizeof(address.sun_path) - 1));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 || ::listen(listener.get(), 8) != 0)
    return skipped("no abstract socket could be made on the host");
  return contained(context.inside({"abstract", name}));
}

Verdict sharedMemory(Context& context) {
  const key_t key = 0x43000000 | (::getpid() & 0xffffff);
  const int id = ::shmget(key, 4096, IPC_CREAT | IPC_EXCL | 0666);
  if (id < 0) return skipped("no shared memory segment could be made on the host");
  const Verdict verdict = contained(context.inside({"shared-memory", std::to_string(key)}));
  ::shmctl(id, IPC_RMID, nullptr);
  return verdict;
}

constexpr Check kChecks[] = {
    {"escape.proc-root", Category::escape, "The host's root can't be reached through /proc",
     [](Context& context) {
       Observed last;
       for (const char* way : {"/proc/1/root", "/proc/self/root", "/proc/1/cwd/../../../../../..", "/../../../.."}) {
         last = context.inside({"read", way + context.canaryPath()});
         if (const Verdict verdict = contained(last); verdict.state != CheckState::passed) return verdict;
       }
       return passed();
     }},
    {"escape.planted-link", Category::escape, "A link in the workspace leads nowhere on the host",
     [](Context& context) {
       const Observed seen = context.run(
           {.command = {"sh", "-c", "ln -s \"$1\" l && cat l 2>/dev/null; echo end", "sh", context.canaryPath()},
            .workspace = true});
       return printed(seen, "end\n");
     }},
    {"escape.overlay", Category::escape, "What is changed in an overlay workspace stays away from the host",
     [](Context& context) {
       return hostFileUnchanged(
           context,
           context.run({.command = {"sh", "-c", "echo bad > file; rm -f file; mkdir file"}, .workspace = true}));
     }},
    {"escape.signal-the-host", Category::escape, "A process of the host can't be signalled",
     [](Context& context) { return contained(context.inside({"signal", std::to_string(::getpid())})); }},
    {"escape.abstract-socket", Category::escape, "Sockets of the host without a file can't be reached", abstractSocket},
    {"escape.shared-memory", Category::escape, "System V memory of the host can't be reached", sharedMemory},
    {"escape.ptrace", Category::escape, "No process can be traced",
     [](Context& context) { return contained(context.inside({"call", "ptrace", "3", "0x7fffffff"})); }},
    {"escape.process-memory", Category::escape, "No memory of another process can be read",
     [](Context& context) { return contained(context.inside({"call", "process_vm_readv", "0x7fffffff"})); }},
    {"escape.namespaces", Category::escape, "No namespace can be joined",
     [](Context& context) { return contained(context.inside({"call", "setns", "-1"})); }},
    {"escape.chroot", Category::escape, "The root can't be changed",
     [](Context& context) { return contained(context.inside({"call", "chroot", "@/nonexistent"})); }},
    {"escape.devices", Category::escape, "No device can be made",
     [](Context& context) { return contained(context.inside({"device", "/tmp/mem"})); }},
    {"escape.host-name", Category::escape, "The host's name is not the sandbox's",
     [](Context& context) {
       const Observed seen = context.script("uname -n");
       const auto weaker = seen.result.layers.find("hostname");
       if (weaker != seen.result.layers.end()) return skipped("weaker rung hostname: " + weaker->second);
       return printed(seen, "sandbox\n");
     }},
};

}  // namespace

std::span<const Check> escapeChecks() { return kChecks; }

}  // namespace caisson::verify
