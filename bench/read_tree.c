// Reads the files tree/d1/f1 to tree/d40/f50 a given number of times, and prints the duration in milliseconds.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double nowMs(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  static char room[1 << 16];
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  const double begin = nowMs();
  for (int round = 0; round < rounds; ++round) {
    for (int directory = 1; directory <= 40; ++directory) {
      for (int file = 1; file <= 50; ++file) {
        char path[64];
        snprintf(path, sizeof(path), "tree/d%d/f%d", directory, file);
        const int descriptor = open(path, O_RDONLY);
        if (descriptor < 0) {
          perror(path);
          return 1;
        }
        while (read(descriptor, room, sizeof(room)) > 0) {
        }
        close(descriptor);
      }
    }
  }
  printf("%.3f\n", nowMs() - begin);
  return 0;
}
