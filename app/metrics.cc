#include "app/metrics.h"

#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "app/readings.h"

namespace halfpage {
namespace {

// By Prometheus' conventions: a prefix of ours, the unit in the name, `_total` at the end of counters.
class Collector : public prometheus::Collectable {
 public:
  explicit Collector(const Topology& topology) : topology_(topology) {}

  std::vector<prometheus::MetricFamily> Collect() const override {
    Snapshot snapshot = topology_.Read();
    std::vector<prometheus::MetricFamily> families;
    std::map<std::string, size_t> places;
    ForEachReading(snapshot, [&](const Reading& reading) {
      const bool counter = reading.kind == Reading::Kind::kCounter;
      const auto [place, is_new] = places.emplace(reading.name, families.size());
      if (is_new) {
        families.push_back({absl::StrCat("halfpage_", reading.name, counter ? "_total" : ""),
                            reading.help,
                            counter ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge,
                            {}});
      }
      prometheus::ClientMetric& metric = families[place->second].metric.emplace_back();
      for (const auto& [label, value] : reading.labels) metric.label.push_back({label, value});
      const double value = reading.count != nullptr ? static_cast<double>(*reading.count) : reading.number;
      (counter ? metric.counter.value : metric.gauge.value) = value;
    });
    return families;
  }

 private:
  const Topology& topology_;
};

// Civetweb, which listens, takes more than we mean: lists, and letters for TLS.
absl::StatusOr<std::string> ListenAddress(const std::string& where) {
  const size_t colon = where.rfind(':');
  std::string address = colon == std::string::npos ? "" : where.substr(0, colon);
  const std::string port = colon == std::string::npos ? where : where.substr(colon + 1);
  uint32_t number = 0;
  const bool digits = port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !absl::SimpleAtoi(port, &number) || number > 65535 ||
      address.find_first_not_of("0123456789abcdefABCDEF.:[]") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "--metrics %s: give PORT, ADDRESS:PORT or [IPV6]:PORT with a port from 0 to 65535, for example 127.0.0.1:9464",
        where));
  }
  if (address.empty()) address = "127.0.0.1";
  return absl::StrCat(address, ":", port);
}

}  // namespace

struct Metrics::Server {
  explicit Server(const std::string& address) : exposer(address, 1) {}

  prometheus::Exposer exposer;
  std::shared_ptr<prometheus::Collectable> collector;
};

absl::StatusOr<Metrics> Metrics::Start(const std::string& where, const Topology& topology) {
  const auto address = ListenAddress(where);
  if (!address.ok()) return address.status();
  try {
    auto server = std::make_unique<Server>(*address);
    server->collector = std::make_shared<Collector>(topology);
    server->exposer.RegisterCollectable(server->collector);
    return Metrics(std::move(server));
  } catch (const std::exception& error) {
    return absl::UnavailableError(absl::StrFormat(
        "--metrics %s: nobody can listen there (%s); the address must be this machine's and the port free", where,
        error.what()));
  }
}

Metrics::Metrics(std::unique_ptr<Server> server) : server_(std::move(server)) {}
Metrics::Metrics(Metrics&&) noexcept = default;
Metrics::~Metrics() = default;

int Metrics::port() const {
  return server_->exposer.GetListeningPorts().front();
}

}  // namespace halfpage
