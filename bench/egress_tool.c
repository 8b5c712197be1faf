// egress_tool: the three ends of a measured transfer.
//   egress_tool serve ADDRESS PORT            sends what the first line asks for ("BYTES\n"), then ends
//   egress_tool relay PORT ADDRESS PORT       the floor of anything in between: accept, connect, splice both ways
//   egress_tool fetch ADDRESS PORT BYTES N    fetches N times; prints MB/s of the whole and the median ms to the first
//   byte
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { kPiece = 256 * 1024 };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct sockaddr_in address(const char* text, const char* port) {
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
  inet_pton(AF_INET, text, &a.sin_addr);
  return a;
}

static int listenOn(struct sockaddr_in a) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(fd, (struct sockaddr*)&a, sizeof(a)) != 0 || listen(fd, 1024) != 0) {
    perror("listen");
    exit(1);
  }
  return fd;
}

static int connectTo(struct sockaddr_in a) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (connect(fd, (struct sockaddr*)&a, sizeof(a)) != 0) {
    perror("connect");
    exit(1);
  }
  return fd;
}

static void serveOne(int fd) {
  static char piece[kPiece];
  char line[32] = {0};
  if (read(fd, line, sizeof(line) - 1) <= 0) return;
  for (long long left = atoll(line); left > 0;) {
    const ssize_t sent = write(fd, piece, left < kPiece ? (size_t)left : kPiece);
    if (sent <= 0) return;
    left -= sent;
  }
}

/// One direction per process: the simplest relay there is.
static void copyAll(int from, int to) {
  int ends[2];
  if (pipe(ends) != 0) return;
  fcntl(ends[1], F_SETPIPE_SZ, kPiece);
  for (;;) {
    const ssize_t got = splice(from, NULL, ends[1], NULL, kPiece, SPLICE_F_MOVE);
    if (got <= 0) break;
    for (ssize_t left = got; left > 0;) {
      const ssize_t sent = splice(ends[0], NULL, to, NULL, (size_t)left, SPLICE_F_MOVE);
      if (sent <= 0) return;
      left -= sent;
    }
  }
  shutdown(to, SHUT_WR);
}

static int compare(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static int fetch(struct sockaddr_in a, const char* bytes, int times) {
  static char piece[kPiece];
  double* first = calloc((size_t)times, sizeof(double));
  const double start = now();
  double total = 0;
  for (int i = 0; i < times; ++i) {
    const double begin = now();
    const int fd = connectTo(a);
    dprintf(fd, "%s\n", bytes);
    for (;;) {
      const ssize_t got = read(fd, piece, sizeof(piece));
      if (got <= 0) break;
      if (first[i] == 0) first[i] = now() - begin;
      total += (double)got;
    }
    close(fd);
  }
  const double seconds = (now() - start) / 1e3;
  if (total != atof(bytes) * times) return fprintf(stderr, "incomplete\n"), 1;
  qsort(first, (size_t)times, sizeof(double), compare);
  printf("%.0f %.3f\n", total / 1e6 / seconds, first[times / 2]);
  return 0;
}

int main(int count, char** words) {
  signal(SIGCHLD, SIG_IGN);
  signal(SIGPIPE, SIG_IGN);
  if (count == 4 && strcmp(words[1], "serve") == 0) {
    const int listener = listenOn(address(words[2], words[3]));
    for (;;) {
      const int client = accept(listener, NULL, NULL);
      if (client >= 0 && fork() == 0) {
        serveOne(client);
        _exit(0);
      }
      close(client);
    }
  }
  if (count == 5 && strcmp(words[1], "relay") == 0) {
    const int listener = listenOn(address("127.0.0.1", words[2]));
    for (;;) {
      const int client = accept(listener, NULL, NULL);
      if (client >= 0 && fork() == 0) {
        const int server = connectTo(address(words[3], words[4]));
        if (fork() == 0) {
          copyAll(client, server);
          _exit(0);
        }
        copyAll(server, client);
        _exit(0);
      }
      close(client);
    }
  }
  if (count == 6 && strcmp(words[1], "fetch") == 0) return fetch(address(words[2], words[3]), words[4], atoi(words[5]));
  fprintf(stderr, "see the first lines of egress_tool.c\n");
  return 2;
}
