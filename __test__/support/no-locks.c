/*
 * A folder on a file system without file locks, as NFS without its lock service, or without shared memory, as some that
 * run in user space: loaded before a program's own libraries (LD_PRELOAD), it refuses locks of files in the folder
 * TEST_NO_LOCKS and shared maps of those in TEST_NO_MAPS. The file TEST_REFUSED gets a byte for each lock.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int is_in(int fd, const char *variable) {
  const char *folder = getenv(variable);
  char link[64], path[4096];
  if (!folder || fd < 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  return length > 0 && (path[length] = 0, !strncmp(path, folder, strlen(folder)));
}

static int controlled(const char *name, int fd, int command, void *argument) {
  int (*real)(int, int, ...) = (int (*)(int, int, ...))dlsym(RTLD_NEXT, name);
  int is_lock = command == F_SETLK || command == F_SETLKW || command == F_GETLK;
  if (!is_lock || !is_in(fd, "TEST_NO_LOCKS")) return real(fd, command, argument);
  const char *path = getenv("TEST_REFUSED");
  FILE *file = path ? fopen(path, "a") : NULL;
  if (file) fputc('x', file), fclose(file);
  errno = ENOLCK;
  return -1;
}

static void *mapped(const char *name, void *at, size_t length, int access, int flags, int fd, off_t from) {
  void *(*real)(void *, size_t, int, int, int, off_t) = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, name);
  if (!(flags & MAP_SHARED) || !is_in(fd, "TEST_NO_MAPS")) return real(at, length, access, flags, fd, from);
  errno = ENODEV;
  return MAP_FAILED;
}

#define CONTROL(name)                          \
  int name(int fd, int command, ...) {         \
    va_list rest;                              \
    va_start(rest, command);                   \
    void *argument = va_arg(rest, void *);     \
    va_end(rest);                              \
    return controlled(#name, fd, command, argument); \
  }
CONTROL(fcntl)
CONTROL(fcntl64)

#define MAP(name)                                                                           \
  void *name(void *at, size_t length, int access, int flags, int fd, off_t from) {          \
    return mapped(#name, at, length, access, flags, fd, from);                              \
  }
MAP(mmap)
MAP(mmap64)
