/* Delays each fsync and fdatasync of PostgreSQL by the number of milliseconds in the file that SLOW_DISK names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char *path = getenv("SLOW_DISK");
  char text[16] = "";
  int before = errno;
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file >= 0) {
    if (read(file, text, sizeof text - 1) > 0 && atoi(text) > 0) usleep(atoi(text) * 1000);
    close(file);
  }
  errno = before;
}

int fsync(int file) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fsync");
  wait_for_disk();
  return real(file);
}

int fdatasync(int file) {
  int (*real)(int) = dlsym(RTLD_NEXT, "fdatasync");
  wait_for_disk();
  return real(file);
}
