/* Offers an engine's counters to other programs, llm-top and Prometheus' collectors among them:
 * in a file, on a unix socket, or both. Plain C, to be copied into a host. */
#ifndef INLAY_SAMPLES_METRICS_EXPORT_H_
#define INLAY_SAMPLES_METRICS_EXPORT_H_

#include <inlay/llm.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct metrics_export metrics_export;

/* Starts a thread that rewrites the file every second, each time whole (by rename), and answers
 * every connection to the socket with the text. Either path may be NULL. A socket that a process
 * left behind is replaced. NULL on failure, with errno set. The engine must outlive it. */
metrics_export* metrics_export_start(llm_engine* engine, const char* file_path,
                                     const char* socket_path);

/* Writes the file a last time, removes the socket and frees. NULL is a no-op. */
void metrics_export_stop(metrics_export* exporter);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* INLAY_SAMPLES_METRICS_EXPORT_H_ */
