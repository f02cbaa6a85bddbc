/* One thread on poll(): a second's timeout for the file, the listening socket, and an eventfd that
 * ends it. */
#include "common/metrics_export.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

struct metrics_export {
  llm_engine* engine;
  char *file_path, *temporary_path, *socket_path; /* NULL: none */
  int listener, wake;                             /* -1: none */
  pthread_t thread;
};

/* The text, for the caller to free; NULL when there is no memory. */
static char* CopyText(llm_engine* engine, size_t* size) {
  size_t capacity = 64 << 10;
  char* text = NULL;
  for (;;) {
    char* larger = realloc(text, capacity);
    if (larger == NULL) break;
    text = larger;
    if (llm_metrics_text(engine, text, capacity, size) != LLM_OK) break;
    if (*size <= capacity) return text;
    capacity = *size + 4096;
  }
  free(text);
  return NULL;
}

/* A file that cannot be written now may be writable in a second: there is no one to tell. */
static void WriteTextFile(const metrics_export* exporter) {
  size_t size;
  char* text = CopyText(exporter->engine, &size);
  FILE* file = text == NULL ? NULL : fopen(exporter->temporary_path, "wbe");
  if (file != NULL) {
    const int written = fwrite(text, 1, size, file) == size;
    if (fclose(file) == 0 && written) rename(exporter->temporary_path, exporter->file_path);
  }
  free(text);
}

/* A reader that does not read is given up after a second. */
static void Answer(const metrics_export* exporter, int connection) {
  const struct timeval second = {1, 0};
  size_t size, sent = 0;
  char* text = CopyText(exporter->engine, &size);
  setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
  while (text != NULL && sent < size) {
    const ssize_t some = send(connection, text + sent, size - sent, MSG_NOSIGNAL);
    if (some <= 0) break;
    sent += (size_t)some;
  }
  close(connection);
  free(text);
}

static void* Run(void* argument) {
  metrics_export* exporter = argument;
  struct pollfd fds[2] = {{exporter->wake, POLLIN, 0}, {exporter->listener, POLLIN, 0}};
  for (;;) {
    if (exporter->file_path != NULL) WriteTextFile(exporter);
    /* poll() passes over a negative descriptor. */
    if (poll(fds, 2, 1000) > 0) {
      if (fds[0].revents != 0) return NULL;
      if (fds[1].revents != 0) {
        const int connection = accept(exporter->listener, NULL, NULL);
        if (connection >= 0) Answer(exporter, connection);
      }
    }
  }
}

/* Whether `address` is a socket that nobody answers on any more. */
static int IsLeftBehind(const struct sockaddr_un* address) {
  struct stat status;
  const int probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int left = 0;
  if (probe < 0) return 0;
  if (stat(address->sun_path, &status) == 0 && S_ISSOCK(status.st_mode))
    left = connect(probe, (const struct sockaddr*)address, sizeof *address) != 0 &&
           errno == ECONNREFUSED;
  close(probe);
  return left;
}

static int Listen(const char* path) {
  struct sockaddr_un address;
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  memset(&address, 0, sizeof address);
  address.sun_family = AF_UNIX;
  if (listener < 0) return -1;
  if (strlen(path) >= sizeof address.sun_path) {
    close(listener);
    errno = ENAMETOOLONG;
    return -1;
  }
  memcpy(address.sun_path, path, strlen(path));
  if (IsLeftBehind(&address)) unlink(path);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 || listen(listener, 8) != 0) {
    const int error = errno;
    close(listener);
    errno = error;
    return -1;
  }
  return listener;
}

static void Free(metrics_export* exporter) {
  if (exporter->listener >= 0) {
    unlink(exporter->socket_path);
    close(exporter->listener);
  }
  if (exporter->wake >= 0) close(exporter->wake);
  free(exporter->file_path);
  free(exporter->temporary_path);
  free(exporter->socket_path);
  free(exporter);
}

/* 0, or errno. */
static int Start(metrics_export* exporter, const char* file_path, const char* socket_path) {
  if (file_path != NULL) {
    const size_t size = strlen(file_path) + sizeof ".tmp";
    exporter->file_path = strdup(file_path);
    exporter->temporary_path = malloc(size);
    if (exporter->file_path == NULL || exporter->temporary_path == NULL) return ENOMEM;
    snprintf(exporter->temporary_path, size, "%s.tmp", file_path);
  }
  exporter->wake = eventfd(0, EFD_CLOEXEC);
  if (exporter->wake < 0) return errno;
  if (socket_path != NULL) {
    exporter->socket_path = strdup(socket_path);
    if (exporter->socket_path == NULL) return ENOMEM;
    exporter->listener = Listen(socket_path);
    if (exporter->listener < 0) return errno;
  }
  return pthread_create(&exporter->thread, NULL, &Run, exporter);
}

metrics_export* metrics_export_start(llm_engine* engine, const char* file_path,
                                     const char* socket_path) {
  metrics_export* exporter = calloc(1, sizeof *exporter);
  int error;
  if (exporter == NULL) return NULL;
  exporter->engine = engine;
  exporter->listener = exporter->wake = -1;
  error = Start(exporter, file_path, socket_path);
  if (error == 0) return exporter;
  Free(exporter);
  errno = error;
  return NULL;
}

void metrics_export_stop(metrics_export* exporter) {
  const uint64_t one = 1;
  if (exporter == NULL) return;
  if (write(exporter->wake, &one, sizeof one) == (ssize_t)sizeof one)
    pthread_join(exporter->thread, NULL);
  if (exporter->file_path != NULL) WriteTextFile(exporter);
  Free(exporter);
}
