// egress_tool: server, relay and client of a measured transfer, and other measurements.
//   egress_tool serve ADDRESS PORT            after "BYTES\n", sends that many bytes and closes; after "hold\n", sends
//                                             one byte and waits until the client closes
//   egress_tool relay PORT ADDRESS PORT       the minimal relay: accept, connect, splice in both directions
//   egress_tool fetch ADDRESS PORT BYTES N    fetches N times; prints MB/s of the whole and the median ms to the first
//   byte
//   egress_tool via PROXY PORT ADDRESS PORT BYTES N   the same through an HTTP proxy, by CONNECT
//   egress_tool hold ADDRESS PORT N SECONDS   holds N connections open, each of which has transferred a byte
//   egress_tool time N COMMAND...             median ms of N runs of a command
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
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
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
  if (strcmp(line, "hold\n") == 0) {
    if (write(fd, piece, 1) == 1 && read(fd, line, 1) < 0) return;
    return;
  }
  for (long long left = atoll(line); left > 0;) {
    const ssize_t sent = write(fd, piece, left < kPiece ? (size_t)left : kPiece);
    if (sent <= 0) return;
    left -= sent;
  }
}

/// The simplest relay: one direction per process.
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

/// Sends a CONNECT request for `where` ("address:port") to the proxy, and reads the response header.
static void throughProxy(int fd, const char* where) {
  char head[4096] = {0};
  size_t have = 0;
  dprintf(fd, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", where, where);
  while (strstr(head, "\r\n\r\n") == NULL && have < sizeof(head) - 1) {
    if (read(fd, head + have++, 1) != 1) break;
  }
  if (strstr(head, " 200 ") == NULL) {
    fprintf(stderr, "the proxy responded: %s\n", head);
    exit(1);
  }
}

static int hold(struct sockaddr_in a, int count, unsigned seconds) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  char byte;
  for (int i = 0; i < count; ++i) {
    const int fd = connectTo(a);
    if (write(fd, "hold\n", 5) != 5 || read(fd, &byte, 1) != 1) return fprintf(stderr, "connection %d failed\n", i), 1;
  }
  printf("held\n");
  fflush(stdout);
  sleep(seconds);
  return 0;
}

static int timeCommand(int times, char** command) {
  double* taken = calloc((size_t)times, sizeof(double));
  signal(SIGCHLD, SIG_DFL);
  for (int i = 0; i < times; ++i) {
    const double begin = now();
    const pid_t child = fork();
    if (child == 0) {
      execvp(command[0], command);
      _exit(127);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) return fprintf(stderr, "it failed\n"), 1;
    taken[i] = now() - begin;
  }
  qsort(taken, (size_t)times, sizeof(double), compare);
  printf("%.3f\n", taken[times / 2]);
  return 0;
}

/// `where`: the target of a CONNECT request if `a` is a proxy, or NULL.
static int fetch(struct sockaddr_in a, const char* where, const char* bytes, int times) {
  static char piece[kPiece];
  double* first = calloc((size_t)times, sizeof(double));
  const double start = now();
  double total = 0;
  for (int i = 0; i < times; ++i) {
    const double begin = now();
    const int fd = connectTo(a);
    if (where != NULL) throughProxy(fd, where);
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
  if (count == 6 && strcmp(words[1], "fetch") == 0)
    return fetch(address(words[2], words[3]), NULL, words[4], atoi(words[5]));
  if (count == 8 && strcmp(words[1], "via") == 0) {
    char where[64];
    snprintf(where, sizeof(where), "%s:%s", words[4], words[5]);
    return fetch(address(words[2], words[3]), where, words[6], atoi(words[7]));
  }
  if (count == 6 && strcmp(words[1], "hold") == 0)
    return hold(address(words[2], words[3]), atoi(words[4]), (unsigned)atoi(words[5]));
  if (count >= 4 && strcmp(words[1], "time") == 0) return timeCommand(atoi(words[2]), words + 3);
  fprintf(stderr, "see the first lines of egress_tool.c\n");
  return 2;
}
