// `without SYSCALL[,SYSCALL]...[:ERRNO] -- PROGRAM [ARGUMENT]...` runs a program on a kernel that lacks these calls.
//
//   without openat2 -- caisson run -- id                  openat2 answers ENOSYS
//   without clone3,openat2:EPERM -- caisson run -- id     both answer EPERM, as old container filters do
//   without namespaces -- caisson doctor                  no new namespace of any kind, as in a container
//
// ERRNO is ENOSYS (the default), EPERM or EACCES. The filter stays with every process that the program starts.
// `namespaces` stands for clone with a namespace flag and unshare (both EPERM unless an errno is given) and for clone3
// (always ENOSYS: its flags lie in memory, where a filter can't look). `time_namespace` stands for unshare of that kind
// alone, EINVAL unless an errno is given, as a kernel built without it answers. `seccomp_listener` stands for a filter
// with a listener (EBUSY), as where a container engine listens already.
#pragma once

namespace caisson::test {

/// Takes the calls away from this process and executes the program. Returns an exit status only if that failed:
/// 2 for a wrong command line, 120 for a filter that could not be installed, 126 or 127 for the program.
int runWithout(int argc, char** argv);

}  // namespace caisson::test
