// Runs a command COUNT times and prints each duration in nanoseconds, one per line.
//
//   repeat COUNT PROGRAM [ARG...]
//
// Started natively and inside a sandbox by the same driver, it times the program alone: the launch of the
// sandbox is not part of the figure. The command's own output goes to /dev/null.
#define _GNU_SOURCE
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

static long long nowNs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (long long)now.tv_sec * 1000000000LL + now.tv_nsec;
}

int main(int argc, char** argv) {
  const long count = argc > 2 ? strtol(argv[1], NULL, 10) : 0;
  if (count <= 0) {
    fprintf(stderr, "usage: repeat COUNT PROGRAM [ARG...]\n");
    return 2;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  for (long i = 0; i < count; ++i) {
    const long long start = nowNs();
    pid_t pid = 0;
    int status = 0;
    if (posix_spawnp(&pid, argv[2], &actions, NULL, argv + 2, environ) != 0) {
      fprintf(stderr, "repeat: cannot start %s\n", argv[2]);
      return 127;
    }
    waitpid(pid, &status, 0);
    if (status != 0) {
      fprintf(stderr, "repeat: %s ended with wait status %d\n", argv[2], status);
      return 1;
    }
    printf("%lld\n", nowNs() - start);
  }
  return 0;
}
