// A library is a guest: it leaves nothing of the process changed, writes nothing, and keeps
// nothing.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <inlay/llm.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/faults/host_state.h"
#include "tests/faults/tiny_host.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace llm {
namespace {

// While it lives, what is written to stdout and stderr goes to memory.
class CapturedOutput {
 public:
  CapturedOutput() {
    std::fflush(nullptr);
    for (int i = 0; i < 2; ++i) {
      saved_[i] = fcntl(i + 1, F_DUPFD_CLOEXEC, 100);
      memory_[i] = memfd_create("output", MFD_CLOEXEC);
      dup2(memory_[i], i + 1);
    }
  }
  ~CapturedOutput() { Restore(); }
  // Ends it; how many bytes came.
  int64_t Restore() {
    std::fflush(nullptr);
    int64_t bytes = 0;
    for (int i = 0; i < 2; ++i) {
      if (saved_[i] < 0) continue;
      struct stat status = {};
      fstat(memory_[i], &status);
      bytes += status.st_size;
      dup2(saved_[i], i + 1);
      close(saved_[i]);
      close(memory_[i]);
      saved_[i] = -1;
    }
    return bytes;
  }

 private:
  int saved_[2];
  int memory_[2];
};

void IgnoreEvent(void* user_data, const llm_event*) {
  ++*static_cast<std::atomic<int>*>(user_data);
}

// Calls that answer, and calls that are refused, from one thread among others.
void UseFromOneThread(llm_model* model, llm_engine* engine) {
  std::atomic<int> events{0};
  llm_request request = TinyRequest();
  request.on_event = IgnoreEvent;
  request.user_data = &events;
  request.choices = 2;
  request.num_logprobs = 2;
  llm_request_id id = 0;
  llm_submit(engine, &request, &id);
  llm_cancel(engine, id + 1000000);
  request.temperature = -1;
  llm_submit(engine, &request, &id);
  int32_t ids[64];
  size_t count = 0;
  llm_tokenize(model, "a \xff word", 8, LLM_TEXT_ADD_SPECIAL, ids, 64, &count);
  llm_detokenize(model, kTinyPrompt, std::size(kTinyPrompt), 0, nullptr, 0, &count);
  llm_chat_render(model, "[]", 2, nullptr, 0, &count);
  llm_chat_render(model, "not json", 8, nullptr, 0, &count);
  llm_score_request score;
  llm_score_request_init(&score);
  score.ids = kTinyPrompt;
  score.num_ids = std::size(kTinyPrompt);
  llm_score(engine, &score, nullptr, 0, &count);
  llm_embed_request embed;
  llm_embed_request_init(&embed);
  embed.ids = kTinyPrompt;
  embed.num_ids = std::size(kTinyPrompt);
  llm_embed(engine, &embed, nullptr, 0, &count);
  llm_metrics_text(engine, nullptr, 0, &count);
  // Every callback has returned after it, and `events` may go.
  llm_engine_shutdown(engine, -1);
}

// Two engines of their own threads or the host's, used by three threads, with a trace on.
void UseEverything(llm_model* model, uint32_t drive) {
  std::vector<llm_engine*> engines(3, nullptr);
  std::vector<std::thread> threads;
  for (llm_engine*& engine : engines) {
    threads.emplace_back([&engine, model, drive] {
      if (OpenTinyEngine(model, drive, &engine) != LLM_OK) return;
      int32_t fd = -1;
      llm_queue_fd(llm_engine_queue(engine), &fd);
      llm_trace_start(engine, "/dev/null", 9);
      UseFromOneThread(model, engine);
      llm_trace_stop(engine);
      llm_engine_close(engine);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void OpenWhatDoesNotOpen() {
  llm_model* model = nullptr;
  llm_model_open("/no/such/file", 13, nullptr, &model);
  llm_model_open("/dev/null", 9, nullptr, &model);
  llm_model_open_memory("GGUF", 4, nullptr, &model);
  llm_model_open_fd(-1, 0, 0, nullptr, &model);
}

class HostDisciplineTest : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__x86_64__)
    saved_mxcsr_ = _mm_getcsr();
    _mm_setcsr(saved_mxcsr_ | 0x8040 | 0x2000);  // denormals are zero, both ways; rounds down
#endif
  }
  void TearDown() override {
#if defined(__x86_64__)
    _mm_setcsr(saved_mxcsr_);
#endif
  }
  unsigned saved_mxcsr_ = 0;
};

TEST_F(HostDisciplineTest, LeavesTheProcessAsItFoundIt) {
  const HostState before = TakeHostState();
  CapturedOutput output;
  OpenWhatDoesNotOpen();
  llm_model* model = nullptr;
  const llm_status opened = OpenTinyModel(&model);
  for (const uint32_t drive : {LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS}) UseEverything(model, drive);
  // On this thread too: it is this one whose registers and masks are compared.
  llm_engine* engine = nullptr;
  OpenTinyEngine(model, LLM_DRIVE_MANUAL, &engine);
  Answer answer;
  const llm_status status = AskOnce(engine, LLM_DRIVE_MANUAL, &answer);
  UseFromOneThread(model, engine);
  const llm_status closed = llm_engine_close(engine);
  llm_model_release(model);
  EXPECT_EQ(output.Restore(), 0) << "the library wrote to stdout or stderr";
  EXPECT_EQ(opened, LLM_OK);
  EXPECT_EQ(status, LLM_OK);
  EXPECT_EQ(closed, LLM_OK);
  EXPECT_TRUE(WaitForThreads(before.num_threads)) << "threads are left after close";
  EXPECT_EQ(Differences(before, TakeHostState()), "");
}

TEST_F(HostDisciplineTest, ACallbackOfAManualEngineRunsInTheHostsState) {
  llm_model* model = nullptr;
  ASSERT_EQ(OpenTinyModel(&model), LLM_OK) << llm_last_error();
  llm_engine* engine = nullptr;
  ASSERT_EQ(OpenTinyEngine(model, LLM_DRIVE_MANUAL, &engine), LLM_OK) << llm_last_error();
  struct Seen {
    HostState before = TakeHostState();
    std::string differences;
    int num_events = 0;
  } seen;
  llm_request request = TinyRequest();
  request.user_data = &seen;
  request.on_event = [](void* user_data, const llm_event*) {
    auto* all = static_cast<Seen*>(user_data);
    all->differences += Differences(all->before, TakeHostState());
    ++all->num_events;
  };
  llm_request_id id = 0;
  ASSERT_EQ(llm_submit(engine, &request, &id), LLM_OK) << llm_last_error();
  uint32_t worked = 1;
  while (worked != 0) ASSERT_EQ(llm_engine_step(engine, &worked), LLM_OK);
  EXPECT_GT(seen.num_events, 0);
  EXPECT_EQ(seen.differences, "");
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  llm_model_release(model);
}

// The signals that the kernel may deliver to any thread go to the host's threads.
TEST_F(HostDisciplineTest, TheHostsSignalsAreNotHandledOnTheLibrarysThreads) {
  static std::atomic<int> handled_elsewhere{0};
  static std::atomic<pid_t> host{0};
  host = gettid();
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = [](int) {
    if (gettid() != host.load()) ++handled_elsewhere;
  };
  ASSERT_EQ(sigaction(SIGUSR1, &action, &old), 0);
  llm_model* model = nullptr;
  ASSERT_EQ(OpenTinyModel(&model), LLM_OK) << llm_last_error();
  llm_engine* engine = nullptr;
  ASSERT_EQ(OpenTinyEngine(model, LLM_DRIVE_THREADS, &engine), LLM_OK) << llm_last_error();
  // Blocked here, a signal of the process goes to another thread if one takes it.
  sigset_t usr1;
  sigset_t mask;
  sigemptyset(&usr1);
  sigaddset(&usr1, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &usr1, &mask);
  kill(getpid(), SIGUSR1);
  Answer answer;
  EXPECT_EQ(AskOnce(engine, LLM_DRIVE_THREADS, &answer), LLM_OK);
  sigset_t pending;
  sigpending(&pending);
  EXPECT_EQ(sigismember(&pending, SIGUSR1), 1) << "a thread of the library took it";
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  EXPECT_EQ(handled_elsewhere.load(), 0);
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  llm_model_release(model);
  sigaction(SIGUSR1, &old, nullptr);
}

// 0: it opened its own model and engines, and they answered as the parent's did.
int AnswerInChild(const Answer& expected) {
  llm_model* model = nullptr;
  if (OpenTinyModel(&model) != LLM_OK) return 1;
  for (const uint32_t drive : {LLM_DRIVE_MANUAL, LLM_DRIVE_THREADS}) {
    llm_engine* engine = nullptr;
    if (OpenTinyEngine(model, drive, &engine) != LLM_OK) return 2;
    Answer answer;
    if (AskOnce(engine, drive, &answer) != LLM_OK) return 3;
    if (std::memcmp(answer.ids, expected.ids, sizeof(answer.ids)) != 0) return 4;
    if (llm_engine_close(engine) != LLM_OK) return 5;
  }
  llm_model_release(model);
  return 0;
}

TEST_F(HostDisciplineTest, AChildOpensItsOwnWhileTheParentGoesOn) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer does not follow a fork among threads";
#endif
  llm_model* model = nullptr;
  ASSERT_EQ(OpenTinyModel(&model), LLM_OK) << llm_last_error();
  llm_engine* engine = nullptr;
  ASSERT_EQ(OpenTinyEngine(model, LLM_DRIVE_THREADS, &engine), LLM_OK) << llm_last_error();
  Answer expected;
  ASSERT_EQ(AskOnce(engine, LLM_DRIVE_THREADS, &expected), LLM_OK);
  for (int round = 0; round < 10; ++round) {
    llm_request request = TinyRequest();
    request.max_new_tokens = 100;
    llm_request_id id = 0;
    ASSERT_EQ(llm_submit(engine, &request, &id), LLM_OK);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(AnswerInChild(expected));
    Answer answer;
    EXPECT_EQ(AskOnce(engine, LLM_DRIVE_THREADS, &answer), LLM_OK);
    EXPECT_EQ(std::memcmp(answer.ids, expected.ids, sizeof(answer.ids)), 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  EXPECT_EQ(llm_engine_close(engine), LLM_OK);
  llm_model_release(model);
}

}  // namespace
}  // namespace llm
