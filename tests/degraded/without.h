// `without SYSCALL[,SYSCALL]...[:ERRNO] -- PROGRAM [ARGUMENT]...` runs a program on a kernel that lacks these calls.
//
//   without openat2 -- caisson run -- id                  openat2 answers ENOSYS
//   without clone3,openat2:EPERM -- caisson run -- id     both answer EPERM, as old container filters do
//   without namespaces -- caisson doctor                  no new namespace of any kind, as in a container
//
// ERRNO is ENOSYS (the default), EPERM or EACCES. Child processes inherit the filter. `namespaces` means clone with a
// namespace flag and unshare (both EPERM by default) and clone3 (always ENOSYS: its flags are in memory, which a filter
// can't read). `time_namespace` means unshare of that kind only, by default EINVAL, as on a kernel without it.
// `masked_proc` covers the parts of /proc that container engines cover, in a separate mount namespace; the kernel
// mounts no new proc in a user namespace below it. `seccomp_listener` means a filter with a listener (EBUSY), as where
// a container engine already listens.
#pragma once

namespace caisson::test {

/// Blocks the calls for this process and executes the program. Returns an exit status only on failure: 2 for a wrong
/// command line, 120 for a filter that could not be installed, 126 or 127 for the program.
int runWithout(int argc, char** argv);

}  // namespace caisson::test
