#include "functional/limits/abuses.h"

namespace caisson::test {
namespace {

constexpr std::string_view kSmall = "[resources]\nmemory = \"64M\"\nopen_files = 4096\n";
constexpr std::string_view kMiddle = "[resources]\nmemory = \"128M\"\n";
constexpr std::string_view kFew = "[process]\nmax_processes = 30\n";
constexpr std::string_view kSecond = "[resources]\ncpu_seconds = \"1s\"\n";
constexpr std::string_view kFile = "[filesystem]\nmax_file_size = \"1M\"\n";
constexpr std::string_view kQuota = "[filesystem]\nmax_total_size = \"16M\"\nmax_inodes = 500\n";
constexpr std::string_view kDiskStore =
    "[filesystem]\nmax_total_size = \"16M\"\nmax_inodes = 500\noverlay_store = \"disk\"\n";
constexpr std::string_view kScratch =
    "[[filesystem.tmpfs]]\npath = \"/tmp\"\nsize = \"16M\"\ninodes = 500\nstore = \"disk\"\n";
constexpr std::string_view kFlood = "[resources]\noutput = \"64K\"\nwall_seconds = \"2s\"\n";
constexpr std::string_view kRw = ".:rw";
// What a fast disk can take between two polls of the supervisor.
constexpr std::uint64_t kOvershoot = 256ULL << 20;

const Abuse kAbuses[] = {
    // Memory of every kind. The bounds (in MiB) are what an unprotected host would lose temporarily.
    {"anonymous", {"take-anonymous", "256"}, kSmall, {"memory"}, {}},
    {"tmpfs", {"fill-file", "/tmp", "99"}, kSmall, {"memory"}, {}},
    {"memfd", {"take-memfd", "256"}, kSmall, {"memory"}, {}},
    {"memfd_of_undumpable_process", {"take-hidden-memfd", "256"}, kSmall, {"memory"}, {}},
    {"memfds_in_flight", {"take-memfds-in-flight", "400", "bytes"}, kMiddle, {"memory"}, {}},
    {"memfds_in_empty_messages", {"take-memfds-in-flight", "400", "empty"}, kMiddle, {"memory"}, {}},
    {"memfds_in_nested_sockets", {"take-memfds-in-flight", "400", "nested"}, kMiddle, {"memory"}, {}},
    {"system_v_memory", {"take-shared", "256"}, kSmall, {"memory"}, {}},
    {"pipes", {"take-pipes", "256"}, kSmall, {"memory"}, {}},
    {"socket_buffers", {"take-sockets", "256"}, kSmall, {"memory"}, {}},
    {"semaphores", {"take-semaphores", "256"}, kSmall, {"memory"}, {"semget: ENOSPC", "semget: ENOMEM"}},
    {"messages", {"take-messages", "256"}, kSmall, {"memory"}, {"msgget: ENOSPC", "msgsnd: ENOMEM"}},
    {"inotify", {"take-watches", "200000", "/tmp"}, kSmall, {"memory", "disk"}, {"watch: ENOSPC"}},
    {"timers", {"take-timers", "100000"}, kSmall, {}, {"timer_create: EAGAIN"}},
    {"posix_queues", {"take-posix-queues", "10000"}, kSmall, {}, {"mq_open: EMFILE", "mq_open: EACCES"}},
    {"keyrings", {"take-keys", "100000"}, kSmall, {}, {"add_key: EPERM", "add_key: ENOSYS"}},
    {"descriptors", {"take-descriptors", "100000"}, kFew, {}, {"dup: EMFILE"}},
    {"descriptors_in_flight", {"take-in-flight", "5000"}, kFew, {}, {"sendmsg: ETOOMANYREFS"}},

    {"threads", {"take-threads", "2000"}, kFew, {"processes"}, {}},
    {"processes", {"take-processes", "2000"}, kFew, {"processes"}, {}},
    {"zombies", {"take-zombies", "2000"}, kFew, {"processes"}, {}},
    {"cpu_of_the_tree", {"burn-tree", "6"}, kSecond, {"cpu"}, {}},
    {"cpu_of_unreaped_children", {"burn-unseen", "6", "200"}, kSecond, {"cpu"}, {}},
    {"cpu_of_short_lived_children", {"burn-unseen", "3", "30"}, kSecond, {"cpu"}, {}},
    {"cpu_of_undumpable_children", {"burn-hidden", "3", "30"}, kSecond, {"cpu"}, {}},
    {"cpu_of_an_unreadable_program", {"burn-unreadable", "5", "30", "/tmp"}, kSecond, {"cpu"}, {}},

    {"file_size", {"fill-file", "/tmp", "50"}, kFile, {"file_size"}, {}},
    {"sparse_file", {"make-sparse", "/tmp", "50"}, kFile, {"file_size"}, {}},
    {"preallocated_file", {"preallocate", "/tmp", "50"}, kFile, {"file_size"}, {}},

    // Also without a limit in the policy, in every kind of workspace: 1 TiB.
    {"sparse_file_in_tmp", {"make-sparse", "/tmp", "1048576"}, "", {"file_size"}, {}},
    {"sparse_file_in_overlay", {"make-sparse", "/workspace", "1048576"}, "", {"file_size"}, {}},
    {"sparse_file_in_workspace", {"make-sparse", "/workspace", "1048576"}, "", {"file_size"}, {}, kRw},

    // Everything that can be written, in bytes and in inodes.
    {"tmp", {"fill-file", "/tmp", "400"}, "", {"disk"}, {}},
    {"var_tmp", {"fill-file", "/var/tmp", "400"}, "", {"disk"}, {}},
    {"home", {"fill-file", "/home/sandbox", "400"}, "", {"disk"}, {}},
    {"run", {"fill-file", "/run", "400"}, "", {"disk"}, {}},
    {"dev_shm", {"fill-file", "/dev/shm", "400"}, "", {"disk"}, {}},
    {"tmp_preallocated", {"preallocate", "/tmp", "400"}, "", {"disk"}, {"fallocate: ENOSPC"}},
    {"run_inodes", {"fill-inodes", "/run", "20000"}, "", {"disk"}, {}},
    {"overlay", {"fill-directory", "/workspace", "400"}, kQuota, {"disk"}, {}},
    {"overlay_inodes", {"fill-inodes", "/workspace", "5000"}, kQuota, {"disk"}, {}},
    {"overlay_on_disk", {"fill-directory", "/workspace", "2000"}, kDiskStore, {"disk"}, {}},
    {"overlay_on_disk_inodes", {"fill-inodes", "/workspace", "200000"}, kDiskStore, {"disk"}, {}},
    {"overlay_on_disk_deleted", {"fill-deleted", "/workspace", "2000"}, kDiskStore, {"disk"}, {}},
    {"overlay_on_disk_hidden", {"fill-hidden", "/workspace", "2000"}, kDiskStore, {"disk"}, {}},
    {"overlay_on_disk_preallocated", {"preallocate", "/workspace", "400"}, kDiskStore, {"disk"}, {}},
    {"scratch_on_disk", {"fill-directory", "/tmp", "2000"}, kScratch, {"disk"}, {}},
    {"scratch_on_disk_inodes", {"fill-inodes", "/tmp", "200000"}, kScratch, {"disk"}, {}},
    {"scratch_on_disk_deleted", {"fill-deleted", "/tmp", "2000"}, kScratch, {"disk"}, {}},
    {"scratch_on_disk_hidden", {"fill-hidden", "/tmp", "2000"}, kScratch, {"disk"}, {}},
    {"workspace", {"fill-directory", "/workspace", "2000"}, kQuota, {"disk"}, {}, kRw, kOvershoot},
    {"workspace_inodes", {"fill-inodes", "/workspace", "200000"}, kQuota, {"disk"}, {}, kRw, kOvershoot},
    {"workspace_deleted", {"fill-deleted", "/workspace", "2000"}, kQuota, {"disk"}, {}, kRw, kOvershoot},
    {"workspace_sparse", {"make-sparse", "/workspace", "4000"}, kQuota, {"disk"}, {}, kRw, kOvershoot},

    {"output", {"flood-output", "100000"}, kFlood, {"time", "output"}, {}},
};

}  // namespace

std::span<const Abuse> abuses() { return kAbuses; }

}  // namespace caisson::test
