// Prints the cost of one system call in nanoseconds.
//
//   syscall_loop getppid|ioctl COUNT
//
// `getppid` does nothing in the kernel, so it shows only the cost of a filter; if a seccomp filter always allows
// it, the kernel decides from its bitmap. `ioctl` on a closed descriptor fails at once, but a filter that checks
// its arguments (TIOCSTI) has to run.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static double nowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

int main(int argc, char** argv) {
  const long count = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  const int is_ioctl = argc == 3 && !strcmp(argv[1], "ioctl");
  if (count <= 0 || (!is_ioctl && strcmp(argv[1], "getppid") != 0)) {
    fprintf(stderr, "usage: syscall_loop getppid|ioctl COUNT\n");
    return 2;
  }
  const double start = nowNs();
  if (is_ioctl) {
    for (long i = 0; i < count; ++i) syscall(SYS_ioctl, -1, 0x5401UL, 0UL);
  } else {
    for (long i = 0; i < count; ++i) syscall(SYS_getppid);
  }
  printf("%.3f\n", (nowNs() - start) / (double)count);
  return 0;
}
