// Modes, owners and times of files in the landlock tier: Landlock does not cover them, the supervisor changes them.
#include <sys/stat.h>

#include <fstream>

#include "degraded/degraded.h"

namespace caisson::test {
namespace {

/// What every script needs; `attempt` prints the errno's name of a failed call.
constexpr const char* kAttributesPrelude = R"(
import ctypes, errno, os, stat, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
def attempt(what, call):
    try:
        call()
        print(what, 'done')
    except OSError as e:
        print(what, errno.errorcode[e.errno])
def raw(number, *arguments):
    if libc.syscall(ctypes.c_long(number), *arguments) < 0:
        e = ctypes.get_errno()
        raise OSError(e, os.strerror(e))
def mode(path): return oct(os.stat(path).st_mode & 0o7777)
FCHMODAT2, EMPTY = 452, 0x1000
)";

class LandlockAttributes : public DegradedTest {
 protected:
  void SetUp() override {
    DegradedTest::SetUp();
    if (IsSkipped()) return;
    requireOrSkip(exists("/usr/bin/python3"), "no python3 here");
  }

  [[nodiscard]] RunOutput python(const std::string& script, std::vector<std::string> options = {}) const {
    const std::string file = workspace.write("script.py", kAttributesPrelude + script);
    std::vector<std::string> arguments{"run", "--tier", "landlock", "--workspace", workspace.path() + ":rw"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.insert(arguments.end(), {"--", "/usr/bin/python3", file});
    return caissonWithout("namespaces", arguments, {.timeout = std::chrono::seconds(70)});
  }
};

TEST_F(LandlockAttributes, ChangeInTheWorkspaceHoweverTheFileIsNamed) {
  const RunOutput output = python(R"(
os.mkdir('d'); open('d/f', 'w').close(); os.symlink('f', 'd/link'); os.symlink(os.path.abspath('d/f'), 'absolute')
os.chmod('d/f', 0o640); print(mode('d/f'))
os.chmod(os.path.abspath('d/f'), 0o600); print(mode('d/f'))
d = os.open('d', os.O_RDONLY | os.O_DIRECTORY)
os.chmod('f', 0o755, dir_fd=d); print(mode('d/f'))
os.chmod('d/link', 0o644); print(mode('d/f'))
os.chmod('absolute', 0o711); print(mode('d/f'))
p = os.open('d/f', os.O_PATH)
os.chmod('/proc/self/fd/%d' % p, 0o715); print(mode('d/f'))
f = os.open('d/f', os.O_RDWR)
os.fchmod(f, 0o666); print(mode('d/f'))
raw(FCHMODAT2, f, b'', 0o700, EMPTY); print(mode('d/f'))
os.chdir('d'); os.chmod('../d/./f', 0o444); print(mode('f')); os.chmod('f', 0o644)
os.chmod('.', 0o750); print(mode('.'))
os.utime('f', (1000, 2000)); print(os.stat('f').st_atime, os.stat('f').st_mtime)
os.utime('link', ns=(5, 6), follow_symlinks=False); print(os.lstat('link').st_mtime_ns, os.stat('f').st_mtime)
os.utime(f, (30, 40)); print(os.stat('f').st_mtime)
os.utime('f'); print(os.stat('f').st_mtime > 1000000)
os.chown('f', os.getuid(), os.getgid()); os.chown('link', -1, -1, follow_symlinks=False); os.fchown(f, -1, os.getgid())
home = os.environ['HOME'] + '/x'; open(home, 'w').close(); os.chmod(home, 0o600); print(mode(home))
temporary = os.environ['TMPDIR'] + '/x'; open(temporary, 'w').close(); os.chmod(temporary, 0o600); print(mode(temporary))
)");
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out,
            "0o640\n0o600\n0o755\n0o644\n0o711\n0o715\n0o666\n0o700\n0o444\n0o750\n1000.0 2000.0\n6 "
            "2000.0\n40.0\nTrue\n0o600\n"
            "0o600\n")
      << output.describe();
}

TEST_F(LandlockAttributes, GiveTheErrorsOfTheKernel) {
  const RunOutput output = python(R"(
open('f', 'w').close(); os.symlink('loop', 'loop'); os.symlink('f', 'link')
attempt('absent', lambda: os.chmod('absent', 0o600))
attempt('not a directory', lambda: os.chmod('f/x', 0o600))
attempt('loop', lambda: os.chmod('loop', 0o600))
attempt('empty', lambda: os.chmod('', 0o600))
attempt('long', lambda: os.chmod('x' * 300, 0o600))
attempt('pointer', lambda: raw(53 if os.uname().machine == 'aarch64' else 268, -100, ctypes.c_void_p(1), 0o600))
attempt('descriptor', lambda: os.fchmod(77, 0o600))
attempt('link', lambda: raw(FCHMODAT2, -100, b'link', 0o600, 0x100))
)");
  EXPECT_EQ(output.out,
            "absent ENOENT\nnot a directory ENOTDIR\nloop ELOOP\nempty ENOENT\nlong ENAMETOOLONG\npointer EFAULT\n"
            "descriptor EPERM\nlink ENOTSUP\n")
      << output.describe();
}

TEST_F(LandlockAttributes, NeverGiveAwayAFileOrASetIdBit) {
  const RunOutput output = python(R"(
open('f', 'w').close(); f = os.open('f', os.O_RDWR)
attempt('setuid', lambda: os.chmod('f', 0o4755))
attempt('setgid', lambda: os.fchmod(f, 0o2755))
attempt('owner', lambda: os.chown('f', os.getuid() + 1, -1))
attempt('root', lambda: os.chown('f', 0, 0))
attempt('group', lambda: os.fchown(f, -1, os.getgid() + 1))
attempt('attribute', lambda: os.setxattr('f', 'user.x', b'1'))
attempt('attribute of a descriptor', lambda: os.setxattr(f, 'user.x', b'1'))
print(mode('f'), os.stat('f').st_uid == os.getuid(), os.listxattr('f'))
)");
  EXPECT_EQ(output.out,
            "setuid EPERM\nsetgid EPERM\nowner EPERM\nroot EPERM\ngroup EPERM\nattribute ENOTSUP\n"
            "attribute of a descriptor ENOTSUP\n0o644 True []\n")
      << output.describe();
}

/// For an ordinary user the canary belongs to the payload's own uid: only the supervisor's check protects it.
TEST_F(LandlockAttributes, StayUnchangedOutsideTheWritableDirectories) {
  const Canary canary(files / "canary");
  const TempDir shown;
  const Canary readable(shown / "readable");
  files.openToAll();
  shown.openToAll();
  const RunOutput output = python("canary, readable = '" + canary.path() + "', '" + readable.path() + R"('
os.symlink(canary, 'link'); os.symlink(os.path.dirname(canary), 'directory'); os.mkdir('d')
attempt('path', lambda: os.chmod(canary, 0o777))
attempt('through a link', lambda: os.chmod('link', 0o777))
attempt('the link to a directory', lambda: os.chmod('directory/canary', 0o777))
attempt('climbing', lambda: os.chmod(os.path.relpath(canary, os.getcwd()), 0o777))
attempt('dots', lambda: os.chmod('d/../../' + os.path.basename(os.path.dirname(canary)) + '/canary', 0o777))
p = os.open(canary, os.O_PATH)
attempt('O_PATH', lambda: raw(FCHMODAT2, p, b'', 0o777, EMPTY))
attempt('magic link', lambda: os.chmod('/proc/self/fd/%d' % p, 0o777))
os.symlink('/proc/self/fd/%d' % p, 'magic')
attempt('link to a magic link', lambda: os.chmod('magic', 0o777))
attempt('root link', lambda: os.chmod('/proc/self/root' + canary, 0o777))
attempt('times', lambda: os.utime(canary, (1, 1)))
attempt('owner', lambda: os.chown(canary, os.getuid(), os.getgid()))
r = os.open(readable, os.O_RDONLY)
attempt('read-only path', lambda: os.chmod(readable, 0o777))
attempt('read-only descriptor', lambda: os.fchmod(r, 0o777))
attempt('times of a descriptor', lambda: os.utime(r, (1, 1)))
d = os.open(os.path.dirname(canary), os.O_PATH)
attempt('directory descriptor', lambda: os.chmod('canary', 0o777, dir_fd=d))
os.chdir(os.path.dirname(canary))
attempt('working directory', lambda: os.chmod('canary', 0o777))
attempt('the directory itself', lambda: os.chmod('.', 0o777))
)",
                                  {"--ro", readable.path()});
  EXPECT_EQ(output.exit_status, 0) << output.describe();
  EXPECT_EQ(output.out.find(" done"), std::string::npos) << output.describe();
  EXPECT_TRUE(canary.untouched()) << output.describe();
  EXPECT_TRUE(readable.untouched()) << output.describe();
}

TEST_F(LandlockAttributes, StayUnchangedInAReadOnlyWorkspace) {
  const TempDir shown;
  const Canary canary(shown / "canary");
  shown.openToAll();
  const RunOutput output = caissonWithout(
      "namespaces", {"run", "--tier", "landlock", "--workspace", shown.path() + ":ro", "--", "sh", "-c",
                     "chmod 777 canary; touch -d @1 canary; chmod 777 .; /usr/bin/python3 -c \"import os; "
                     "os.fchmod(os.open('canary', os.O_RDONLY), 0o777)\""});
  EXPECT_NE(output.exit_status, 0) << output.describe();
  EXPECT_TRUE(canary.untouched()) << output.describe();
}

/// Threads swap the path in memory, the working directory and a link on the way while the calls are made.
TEST_F(LandlockAttributes, StayUnchangedOutsideUnderARace) {
  const Canary canary(files / "canary");
  files.openToAll();
  const std::string rounds = std::to_string(500 * stress());
  const RunOutput output = python("canary = '" + canary.path() + "'\nrounds = " + rounds + R"(
os.mkdir('d'); inside = os.path.abspath('d/canary'); open(inside, 'w').close(); outside = os.path.dirname(canary)
os.symlink('d', 'link0'); os.symlink(outside, 'link1'); os.symlink('d', 'way')
room = ctypes.create_string_buffer(4096)
stop = False
def swap_memory():
    while not stop:
        room.value = inside.encode(); room.value = canary.encode()
def swap_links():
    while not stop:
        for name in ('link0', 'link1'):
            os.symlink(os.readlink(name), 'next'); os.rename('next', 'way')
def swap_directory():
    while not stop:
        os.chdir(outside); os.chdir(os.path.dirname(inside))
base = os.path.dirname(os.path.dirname(inside))
os.chdir(base)
threads = [threading.Thread(target=f) for f in (swap_memory, swap_links)]
for t in threads: t.start()
number = 53 if os.uname().machine == 'aarch64' else 268
for i in range(rounds):
    libc.syscall(ctypes.c_long(number), ctypes.c_long(-100), room, ctypes.c_long(0o777 if i % 2 else 0o700))
    try: os.chmod('way/canary', 0o777)
    except OSError: pass
stop = True
for t in threads: t.join()
stop = False
turn = threading.Thread(target=swap_directory); turn.start()
for i in range(rounds):
    try: os.chmod('canary', 0o777 if i % 2 else 0o700)
    except OSError: pass
    try: os.utime('canary', (1, 1))
    except OSError: pass
stop = True
turn.join()
print('raced')
)",
                                  {"--timeout", "60s"});
  EXPECT_EQ(output.out, "raced\n") << output.describe();
  EXPECT_TRUE(canary.untouched()) << output.describe();
}

/// Without our own listener these calls cannot be made for the payload: they are denied, not allowed.
TEST_F(LandlockAttributes, AreDeniedWithoutAListener) {
  const std::string file = workspace.write("file", "x");
  ASSERT_EQ(chmod(file.c_str(), 0666), 0);
  const RunOutput output = caissonWithout(
      "namespaces,seccomp_listener", {"run", "--tier", "landlock", "--workspace", workspace.path() + ":rw", "--", "sh",
                                      "-c", "> mine; chmod 777 mine 2>&1; stat -c %a mine"});
  EXPECT_TRUE(contains(output.out, "Operation not permitted")) << output.describe();
  EXPECT_TRUE(contains(output.out, "644\n")) << output.describe();
}

TEST_F(LandlockAttributes, DoNotHoldUpTheTimeLimitUnderAFlood) {
  const RunOutput output = python(R"(
open('f', 'w').close()
def flood():
    while True: os.chmod('f', 0o600)
for i in range(8): threading.Thread(target=flood).start()
)",
                                  {"--timeout", "2s"});
  EXPECT_EQ(output.exit_status, 124) << output.describe();
  EXPECT_LT(output.duration, std::chrono::seconds(12) * slowness()) << output.describe();
}

}  // namespace
}  // namespace caisson::test
