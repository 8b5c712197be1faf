// The kernel's floor for one launch: the minimal cost of any sandbox that builds the same root.
//
//   floor [--without GROUP[,GROUP...]] [--list] PROGRAM [ARG...]
//
// One clone3 into user, pid, mount, net, ipc, uts and cgroup namespaces, the mounts of a caisson
// `full` launch, pivot_root, loopback up, exec, wait. Nothing else: no seccomp, no Landlock, no
// capability is dropped, no limit, no init, no descriptor is closed. It is a reference, not a sandbox.
//
// `kSteps` is the whole list of what is built, in order. Keep it equal to src/plan (filesystem.cc,
// system_paths.*), so that the ratio caisson/floor shows the cost of caisson itself. GROUP is a name in the second
// column; leaving one out shows the cost of that part of the root (`--without overlay` binds the workspace read-only).
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum Kind {
  kDirectory,   // in the root's own tmpfs
  kFile,        // `source` is the content
  kSymlink,     // `source` is the link's text
  kBind,        // a clone of the host's file or directory, without the mounts below it
  kFilesystem,  // a new instance of the type `source`
  kMask,        // an empty file or directory in place of `target`
  kProtect,     // `target` bound on itself
  kOverlay,     // the current directory below, a tmpfs above
};

enum Group { kBase, kUsr, kEtc, kDev, kProc, kTmp, kWork, kGroups };
static const char* const kGroupNames[kGroups] = {"base", "usr", "etc", "dev", "proc", "tmp", "overlay"};

struct Step {
  enum Kind kind;
  enum Group group;
  const char* target;   // relative to the new root
  const char* source;   // by kind, see above
  const char* options;  // kFilesystem: "key=value,key=value"
  uint64_t attributes;  // of the mount
  bool is_directory;    // kBind, kMask
  bool optional;        // not an error when the host has no such source or target
};

#define RO MOUNT_ATTR_RDONLY
#define NOSUID MOUNT_ATTR_NOSUID
#define NODEV MOUNT_ATTR_NODEV
#define NOEXEC MOUNT_ATTR_NOEXEC
#define DIRECTORY(group, target) {kDirectory, group, target, 0, 0, 0, true, false}
#define FILE_WITH(group, target, text) {kFile, group, target, text, 0, 0, false, false}
#define SYMLINK(group, target, text) {kSymlink, group, target, text, 0, 0, false, false}
#define ETC_FILE(name) {kBind, kEtc, "etc/" name, "/etc/" name, 0, RO | NOSUID | NODEV | NOEXEC, false, true}
#define ETC_TREE(name) {kBind, kEtc, "etc/" name, "/etc/" name, 0, RO | NOSUID | NODEV, true, true}
#define DEVICE(name) {kBind, kDev, "dev/" name, "/dev/" name, 0, NOSUID | NOEXEC, false, false}
#define TMPFS(group, target, options, attributes) \
  {kFilesystem, group, target, "tmpfs", options, NOSUID | NODEV | (attributes), true, false}
#define MASK_FILE(name) {kMask, kProc, "proc/" name, 0, 0, RO | NOSUID | NOEXEC, false, true}
#define MASK_TREE(name) {kMask, kProc, "proc/" name, 0, 0, RO | NOSUID | NODEV | NOEXEC, true, true}
#define PROTECT(name) {kProtect, kProc, "proc/" name, 0, 0, RO | NOSUID | NODEV | NOEXEC, true, true}

static const struct Step kSteps[] = {
    DIRECTORY(kUsr, "usr"),
    {kBind, kUsr, "usr", "/usr", 0, RO | NOSUID | NODEV, true, false},
    SYMLINK(kUsr, "bin", "usr/bin"),
    SYMLINK(kUsr, "sbin", "usr/sbin"),
    SYMLINK(kUsr, "lib", "usr/lib"),
    SYMLINK(kUsr, "lib32", "usr/lib32"),
    SYMLINK(kUsr, "lib64", "usr/lib64"),

    DIRECTORY(kEtc, "etc"),
    FILE_WITH(kEtc, "etc/passwd",
              "root:x:0:0:root:/root:/usr/sbin/nologin\n"
              "sandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n"
              "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"),
    FILE_WITH(kEtc, "etc/group", "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n"),
    FILE_WITH(kEtc, "etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost sandbox\n"),
    FILE_WITH(kEtc, "etc/hostname", "sandbox\n"),
    FILE_WITH(kEtc, "etc/resolv.conf", "# no network\n"),
    FILE_WITH(kEtc, "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n"),
    FILE_WITH(kEtc, "etc/gitconfig", "[core]\n\tcheckStat = minimal\n"),
    SYMLINK(kEtc, "etc/localtime", "/usr/share/zoneinfo/Etc/UTC"),
    SYMLINK(kEtc, "etc/os-release", "../usr/lib/os-release"),
    DIRECTORY(kEtc, "etc/ssl"),
    ETC_FILE("ld.so.cache"),
    ETC_TREE("alternatives"),
    ETC_TREE("ssl/certs"),
    ETC_FILE("ssl/openssl.cnf"),
    ETC_FILE("protocols"),
    ETC_FILE("services"),
    ETC_FILE("mime.types"),
    ETC_TREE("fonts"),
    ETC_TREE("perl"),
    ETC_TREE("java-17-openjdk"),
    ETC_TREE("java-21-openjdk"),

    DIRECTORY(kBase, "root"),
    DIRECTORY(kBase, "var"),
    SYMLINK(kBase, "var/run", "/run"),
    DIRECTORY(kBase, "home"),

    DIRECTORY(kDev, "dev"),
    DEVICE("null"),
    DEVICE("zero"),
    DEVICE("full"),
    DEVICE("random"),
    DEVICE("urandom"),
    DEVICE("tty"),
    DIRECTORY(kDev, "dev/pts"),
    {kFilesystem, kDev, "dev/pts", "devpts", "ptmxmode=0666,mode=0620", NOSUID | NOEXEC, true, false},
    SYMLINK(kDev, "dev/ptmx", "pts/ptmx"),
    SYMLINK(kDev, "dev/fd", "/proc/self/fd"),
    SYMLINK(kDev, "dev/stdin", "/proc/self/fd/0"),
    SYMLINK(kDev, "dev/stdout", "/proc/self/fd/1"),
    SYMLINK(kDev, "dev/stderr", "/proc/self/fd/2"),
    DIRECTORY(kDev, "dev/shm"),
    TMPFS(kDev, "dev/shm", "size=64M,nr_inodes=8192,mode=1777", NOEXEC),

    DIRECTORY(kProc, "proc"),
    {kFilesystem, kProc, "proc", "proc", "hidepid=2", NOSUID | NODEV | NOEXEC, true, false},
    MASK_TREE("acpi"),
    MASK_TREE("asound"),
    MASK_TREE("bus"),
    MASK_TREE("device-tree"),
    MASK_TREE("driver"),
    MASK_TREE("dynamic_debug"),
    MASK_TREE("fs"),
    MASK_TREE("irq"),
    MASK_TREE("pressure"),
    MASK_TREE("scsi"),
    MASK_TREE("tty"),
    MASK_FILE("allocinfo"),
    MASK_FILE("bootconfig"),
    MASK_FILE("buddyinfo"),
    MASK_FILE("cgroups"),
    MASK_FILE("cmdline"),
    MASK_FILE("config.gz"),
    MASK_FILE("consoles"),
    MASK_FILE("crypto"),
    MASK_FILE("devices"),
    MASK_FILE("diskstats"),
    MASK_FILE("dma"),
    MASK_FILE("execdomains"),
    MASK_FILE("fb"),
    MASK_FILE("interrupts"),
    MASK_FILE("iomem"),
    MASK_FILE("ioports"),
    MASK_FILE("kallsyms"),
    MASK_FILE("kcore"),
    MASK_FILE("key-users"),
    MASK_FILE("keys"),
    MASK_FILE("kmsg"),
    MASK_FILE("kpagecgroup"),
    MASK_FILE("kpagecount"),
    MASK_FILE("kpageflags"),
    MASK_FILE("latency_stats"),
    MASK_FILE("locks"),
    MASK_FILE("mdstat"),
    MASK_FILE("misc"),
    MASK_FILE("modules"),
    MASK_FILE("mtrr"),
    MASK_FILE("pagetypeinfo"),
    MASK_FILE("partitions"),
    MASK_FILE("sched_debug"),
    MASK_FILE("schedstat"),
    MASK_FILE("slabinfo"),
    MASK_FILE("softirqs"),
    MASK_FILE("swaps"),
    MASK_FILE("sysrq-trigger"),
    MASK_FILE("timer_list"),
    MASK_FILE("vmallocinfo"),
    MASK_FILE("vmstat"),
    MASK_FILE("zoneinfo"),
    PROTECT("sys"),

    DIRECTORY(kTmp, "tmp"),
    TMPFS(kTmp, "tmp", "size=100M,nr_inodes=65536,mode=1777", 0),
    DIRECTORY(kTmp, "var/tmp"),
    TMPFS(kTmp, "var/tmp", "size=50M,nr_inodes=32768,mode=1777", NOEXEC),
    DIRECTORY(kTmp, "home/sandbox"),
    TMPFS(kTmp, "home/sandbox", "size=64M,nr_inodes=32768,mode=0700", NOEXEC),
    DIRECTORY(kTmp, "run"),
    TMPFS(kTmp, "run", "size=16M,nr_inodes=8192,mode=0700", NOEXEC),

    DIRECTORY(kBase, "workspace"),
    TMPFS(kWork, "workspace", "size=1G,nr_inodes=1000000,mode=0700", 0),  // holds upper and work, hidden by the next
    {kOverlay, kWork, "workspace", 0, 0, NOSUID | NODEV, true, false},
};

static void fail(const char* call, const char* object) {
  dprintf(2, "floor: %s(\"%s\"): %s\n", call, object, strerror(errno));
  _exit(125);
}

static int checked(long result, const char* call, const char* object) {
  if (result < 0) fail(call, object);
  return (int)result;
}

static void writeFile(int directory, const char* path, const char* text, int flags) {
  const int file = checked(openat(directory, path, flags | O_WRONLY | O_CLOEXEC | O_NOFOLLOW, 0444), "openat", path);
  if (write(file, text, strlen(text)) < 0) fail("write", path);
  close(file);
}

/// A clone of one mount. The kernel refuses (EINVAL) to leave out mounts that this user namespace may not uncover.
static int cloneMount(int directory, const char* path, unsigned flags) {
  const unsigned how = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags;
  const int tree = open_tree(directory, path, how);
  return tree < 0 && errno == EINVAL ? open_tree(directory, path, how | AT_RECURSIVE) : tree;
}

static void setAttributes(int mount, const char* object, uint64_t attributes) {
  struct mount_attr attr = {.attr_set = attributes};
  checked(mount_setattr(mount, "", AT_EMPTY_PATH, &attr, sizeof attr), "mount_setattr", object);
}

static void attach(int mount, int root, const char* target) {
  checked(move_mount(mount, "", root, target, MOVE_MOUNT_F_EMPTY_PATH), "move_mount", target);
  close(mount);
}

static int newFilesystem(const char* type, const char* options, unsigned attributes) {
  const int context = checked(fsopen(type, FSOPEN_CLOEXEC), "fsopen", type);
  char copy[128];
  snprintf(copy, sizeof copy, "%s", options);
  char* rest = NULL;
  for (char* key = strtok_r(copy, ",", &rest); key; key = strtok_r(NULL, ",", &rest)) {
    char* value = strchr(key, '=');
    if (value) *value++ = 0;
    const unsigned command = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
    checked(fsconfig(context, command, key, value, 0), "fsconfig", key);
  }
  checked(fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0), "fsconfig create", type);
  const int mount = checked(fsmount(context, FSMOUNT_CLOEXEC, attributes), "fsmount", type);
  close(context);
  return mount;
}

static void bindPath(int root, const struct Step* step) {
  const int tree = cloneMount(AT_FDCWD, step->source, 0);
  if (tree < 0 && step->optional && (errno == ENOENT || errno == EACCES)) return;
  checked(tree, "open_tree", step->source);
  const int made =
      step->is_directory ? mkdirat(root, step->target, 0755) : mknodat(root, step->target, S_IFREG | 0444, 0);
  if (made < 0 && errno != EEXIST) fail("mknodat", step->target);
  setAttributes(tree, step->target, step->attributes);
  attach(tree, root, step->target);
}

static void maskPath(int root, const struct Step* step) {
  struct stat found;
  if (fstatat(root, step->target, &found, AT_SYMLINK_NOFOLLOW) < 0 || S_ISLNK(found.st_mode)) return;
  const int tree = step->is_directory ? checked(cloneMount(root, "root", 0), "open_tree", "an empty directory")
                                      : checked(cloneMount(AT_FDCWD, "/dev/null", 0), "open_tree", "/dev/null");
  setAttributes(tree, step->target, step->attributes);
  attach(tree, root, step->target);
}

static void protectPath(int root, const struct Step* step) {
  const int tree = cloneMount(root, step->target, 0);
  if (tree < 0 && errno == ENOENT) return;
  checked(tree, "open_tree", step->target);
  setAttributes(tree, step->target, step->attributes);
  attach(tree, root, step->target);
}

/// Layers are named by descriptor through the host's /proc: a path with ':' or ',' needs no escaping then.
static void mountOverlay(int root, int workspace, const struct Step* step) {
  const int store = checked(openat(root, step->target, O_PATH | O_DIRECTORY | O_CLOEXEC), "openat", step->target);
  checked(mkdirat(store, "upper", 0755), "mkdirat", "upper");
  checked(mkdirat(store, "work", 0755), "mkdirat", "work");
  char options[128];
  snprintf(options, sizeof options,
           "userxattr,lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/upper,workdir=/proc/self/fd/%d/work",
           workspace, store, store);
  const int mount = newFilesystem("overlay", options, (unsigned)step->attributes);
  close(store);
  attach(mount, root, step->target);
}

static void apply(int root, int workspace, const struct Step* step) {
  switch (step->kind) {
    case kDirectory: checked(mkdirat(root, step->target, 0755), "mkdirat", step->target); return;
    case kFile: writeFile(root, step->target, step->source, O_CREAT | O_EXCL); return;
    case kSymlink: checked(symlinkat(step->source, root, step->target), "symlinkat", step->target); return;
    case kBind: bindPath(root, step); return;
    case kFilesystem:
      attach(newFilesystem(step->source, step->options, (unsigned)step->attributes), root, step->target);
      return;
    case kMask: maskPath(root, step); return;
    case kProtect: protectPath(root, step); return;
    case kOverlay: mountOverlay(root, workspace, step); return;
  }
}

static void mapIds(uid_t uid, gid_t gid) {
  char line[64];
  writeFile(AT_FDCWD, "/proc/self/setgroups", "deny", 0);
  snprintf(line, sizeof line, "1000 %u 1\n", uid);
  writeFile(AT_FDCWD, "/proc/self/uid_map", line, 0);
  snprintf(line, sizeof line, "1000 %u 1\n", gid);
  writeFile(AT_FDCWD, "/proc/self/gid_map", line, 0);
}

static void raiseLoopback(void) {
  const int probe = checked(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), "socket", "lo");
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
  checked(ioctl(probe, SIOCSIFFLAGS, &request), "ioctl SIOCSIFFLAGS", "lo");
  close(probe);
}

static void enterRoot(int root, const char* directory) {
  setAttributes(root, "/", RO);
  checked(fchdir(root), "fchdir", "/");
  checked(syscall(SYS_pivot_root, ".", "."), "pivot_root", ".");
  checked(umount2(".", MNT_DETACH), "umount2", ".");
  checked(chdir(directory), "chdir", directory);
}

static void buildRoot(unsigned without) {
  // Host mounts made later must not appear below our binds.
  checked(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "mount", "/");
  const int workspace = checked(open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), "open", ".");
  const int root = newFilesystem("tmpfs", "size=4M,nr_inodes=2048,mode=0755", NOSUID | NODEV);
  checked(move_mount(root, "", AT_FDCWD, "/tmp", MOVE_MOUNT_F_EMPTY_PATH), "move_mount", "/tmp");
  for (size_t i = 0; i < sizeof kSteps / sizeof *kSteps; ++i) {
    if (!(without & (1U << kSteps[i].group))) apply(root, workspace, &kSteps[i]);
  }
  if (without & (1U << kWork)) {
    const int tree = checked(cloneMount(workspace, "", AT_EMPTY_PATH), "open_tree", "workspace");
    setAttributes(tree, "workspace", RO | NOSUID | NODEV);
    attach(tree, root, "workspace");
  }
  enterRoot(root, "/workspace");
}

static void child(unsigned without, uid_t uid, gid_t gid, char** command) {
  static char* const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/home/sandbox", NULL};
  mapIds(uid, gid);
  buildRoot(without);
  checked(sethostname("sandbox", 7), "sethostname", "sandbox");
  raiseLoopback();
  execvpe(command[0], command, environment);
  fail("execvpe", command[0]);
}

static unsigned parseGroups(char* list) {
  unsigned groups = 0;
  char* rest = NULL;
  for (char* name = strtok_r(list, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
    unsigned group = 0;
    while (group < kGroups && strcmp(name, kGroupNames[group])) ++group;
    if (group == kGroups || group == kBase) {
      dprintf(2, "floor: unknown group %s (usr etc dev proc tmp overlay)\n", name);
      exit(125);
    }
    groups |= 1U << group;
  }
  return groups;
}

static int listSteps(void) {
  static const char* const kinds[] = {"directory",  "file", "symlink", "bind",
                                      "filesystem", "mask", "protect", "overlay"};
  for (size_t i = 0; i < sizeof kSteps / sizeof *kSteps; ++i) {
    printf("%-8s %-10s /%s\n", kGroupNames[kSteps[i].group], kinds[kSteps[i].kind], kSteps[i].target);
  }
  return 0;
}

int main(int argc, char** argv) {
  unsigned without = 0;
  int next = 1;
  if (argc > 1 && !strcmp(argv[1], "--list")) return listSteps();
  if (argc > 2 && !strcmp(argv[1], "--without")) {
    without = parseGroups(argv[2]);
    next = 3;
  }
  if (next >= argc) {
    dprintf(2, "usage: floor [--without GROUP[,GROUP...]] [--list] PROGRAM [ARG...]\n");
    return 125;
  }
  const uid_t uid = geteuid();
  const gid_t gid = getegid();
  struct clone_args args = {
      .flags =
          CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
      .exit_signal = SIGCHLD,
  };
  const pid_t pid = checked(syscall(SYS_clone3, &args, sizeof args), "clone3", "all namespaces");
  if (pid == 0) child(without, uid, gid, argv + next);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0) {
    if (errno != EINTR) fail("waitpid", "child");
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
