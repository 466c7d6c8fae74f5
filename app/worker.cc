// Hot path: the round of a worker. Read on in xdp_emul/receive_queue.cc.
#include "app/worker.h"

#include <rte_cycles.h>

#include "mempool/buffer_stamp.h"

namespace halfpage {
namespace {

uint16_t Generate(Generator& generator, Transmit* transmit) {
  rte_mbuf* frames[kMaxBurst];
  uint16_t due = generator.burst;
  uint64_t now = 0;
  if (__builtin_expect((generator.pace.ticks != 0) | generator.timed, 0)) {
    now = rte_rdtsc();
    due = generator.timed ? generator.source.Due(now, generator.burst) : generator.pace.Due(now, generator.burst);
    if (due == 0) return 0;
  }
  const uint64_t short_before = generator.source.nobuf();
  const uint16_t n = generator.source.Fill(frames, due);
  generator.pace.Took(now, n, generator.burst);
  generator.nobuf.Add(generator.source.nobuf() - short_before);
  if (generator.source.done()) generator.done.store(true, std::memory_order_relaxed);
  if (n == 0) return 0;
  generator.generated.Add(n);
  BurstFacts facts;  // not known to be simple, no frame too long: what is refused is freed the careful way
  facts.simple = facts.alone = false;
  if (generator.check_lengths) facts = Survey(frames, n);
  if (__builtin_expect(generator.track_owners, 0)) StampBurst(frames, n, generator.ring_stage, rte_rdtsc());
  Transmit& into = transmit[generator.into];
  const SendResult result = Send(into, generator.next_queue, frames, n, kMaxBurst, facts);
  if (++generator.next_queue == into.queues) generator.next_queue = 0;
  generator.sent.Add(result.sent);
  if (__builtin_expect(result.sent != n, 0)) {
    for (int reason = 0; reason < kRefusals; ++reason) generator.refused[reason].Add(result.refused[reason]);
  }
  return n;
}

uint32_t Serve(Worker& worker) {
  const uint64_t now = rte_rdtsc();
  uint32_t moved = 0;
  for (UdpReader& reader : worker.udp_readers) moved += ReadSocket(reader, now);
  for (UserReader& reader : worker.user_readers) moved += ServeUser(reader, now);
  return moved;
}

}  // namespace

int RunWorker(void* argument) {
  Worker& worker = *static_cast<Worker*>(argument);
  for (Generator& generator : worker.generators) {  // a pause is not made up for
    generator.source.RestartClock();
    generator.pace.next = 0;
  }
  for (;;) {
    const Phase phase = worker.phase->load(std::memory_order_relaxed);
    if (phase == Phase::kStopped) return 0;
    if (const WorkerSettings* settings = worker.settings.load(std::memory_order_acquire);
        __builtin_expect(settings != nullptr, 0)) {
      Adopt(worker, *settings);
      worker.settings.store(nullptr, std::memory_order_release);
    }
    uint32_t moved = 0;
    if (phase == Phase::kRunning) {
      for (Generator& generator : worker.generators) moved += Generate(generator, worker.transmit.get());
    }
    for (ReceiveQueue& queue : worker.queues) {
      // What comes in from outside while the run ends stays outside: it might never cease.
      if (queue.stopped | (phase == Phase::kDraining && queue.from_outside)) continue;
      moved += Poll(queue);
    }
    for (CpuQueue& remote : worker.remotes) moved += PollRemote(remote);
    if (__builtin_expect(worker.reads, 0)) moved += Serve(worker);
    if (moved == 0) worker.idle_rounds.Add(1);
    worker.rounds.store(worker.rounds.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
}

}  // namespace halfpage
