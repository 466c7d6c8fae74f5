#include "app/process.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

namespace halfpage {
namespace {

// A handler can reach nothing else.
volatile sig_atomic_t stop_requested = 0;

void OnSignal(int number) {
  if (stop_requested != 0) _exit(128 + number);
  stop_requested = 1;
}

}  // namespace

void OpenStandardStreams() {
  for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) {
    // open() gives the lowest number that is free: this one, since those below are open by now.
    if (fcntl(stream, F_GETFD) == -1 && open("/dev/null", O_RDWR) != stream) return;
  }
}

void CatchSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  action.sa_handler = SIG_IGN;
  sigaction(SIGPIPE, &action, nullptr);
}

bool StopRequested() {
  return stop_requested != 0;
}

}  // namespace halfpage
