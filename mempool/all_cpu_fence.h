// A memory fence on all CPUs that run a thread of this process, so that those threads need none themselves.
#pragma once

namespace halfpage {

// Once per process, before the first FenceOnAllCpus(): the kernel wants to know beforehand. Costs some milliseconds
// where other threads run.
void RegisterForFences();

// Runs a full fence on each of them (membarrier(2), an interrupt where a thread runs). False where the kernel or a
// sandbox has no such call; then nothing happened.
bool FenceOnAllCpus();

}  // namespace halfpage
