#include "app/worker_settings.h"

#include <algorithm>

#include "app/worker.h"

namespace halfpage {

namespace {

void AdoptQueue(ReceiveQueue& queue, const QueueSettings& from, const WorkerSettings& settings) {
  queue.program = from.program;
  queue.hits = from.hits;
  queue.converter = from.converter;
  queue.look_at_simple = from.look_at_simple;
  queue.reshapes = from.reshapes;
  queue.stopped = from.stopped;
  std::copy(from.leaving.begin(), from.leaving.end(), queue.origin.leaving);
  queue.budget = settings.budget;
  queue.bulk = settings.bulk;
}

}  // namespace

void Adopt(Worker& worker, const WorkerSettings& settings) {
  for (size_t q = 0; q < settings.queues.size(); ++q) AdoptQueue(worker.queues[q], settings.queues[q], settings);
  for (size_t r = 0; r < settings.remotes.size(); ++r) {
    worker.remotes[r].budget = settings.budget;
    for (size_t device = 0; device < settings.remotes[r].size(); ++device) {
      AdoptQueue(worker.remote_queues[r][device], settings.remotes[r][device], settings);
    }
  }
  for (size_t d = 0; d < settings.ways.size(); ++d) {
    const WaySettings& from = settings.ways[d];
    Transmit& way = worker.transmit[d];
    way.frame_limit = from.frame_limit;
    way.real_limit = from.real_limit;
    way.takes_gso = from.takes_gso;
    way.sends_chains = from.sends_chains;
    way.xdp_closed = from.xdp_closed;
    way.closed = from.closed;
  }
  for (size_t e = 0; e < settings.egress.size(); ++e) {
    worker.egress[e].program = settings.egress[e].program;
    worker.egress[e].hits = settings.egress[e].hits;
  }
  std::copy(settings.leaving.begin(), settings.leaving.end(), worker.leaving.begin());
  for (size_t g = 0; g < settings.sources.size(); ++g) {
    Generator& generator = worker.generators[g];
    generator.burst = settings.sources[g].burst;
    generator.timed = settings.sources[g].timed;
    generator.check_lengths = settings.sources[g].check_lengths;
    if (generator.pace.ticks == settings.sources[g].ticks) continue;
    generator.pace = {settings.sources[g].ticks, 0};
  }
  for (UdpReader& reader : worker.udp_readers) reader.budget = settings.budget;
  for (UserReader& reader : worker.user_readers) {
    reader.budget = settings.budget;
    reader.bulk = settings.bulk;
  }
}

}  // namespace halfpage
