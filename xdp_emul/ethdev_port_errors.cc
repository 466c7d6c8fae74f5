#include "xdp_emul/ethdev_port_errors.h"

#include <net/if.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace halfpage {
namespace {

std::string Interfaces() {
  std::vector<std::string> names;
  struct if_nameindex* all = if_nameindex();
  for (struct if_nameindex* each = all; each != nullptr && each->if_name != nullptr; ++each) {
    names.emplace_back(each->if_name);
  }
  if (all != nullptr) if_freenameindex(all);
  return absl::StrJoin(names, ", ");
}

}  // namespace

absl::Status CheckBeforeProbe(const std::string& port, const DeviceString& device) {
  if (rte_eth_dev_count_total() >= RTE_MAX_ETHPORTS) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("port %s: DPDK has %d ports, and all are taken; each end of a pair is one, so use fewer pairs "
                        "or ports",
                        port, RTE_MAX_ETHPORTS));
  }
  const bool on_interface = device.driver == "net_af_packet" || device.driver == "net_af_xdp";
  const std::string interface = device.Text("iface");
  if (on_interface && (interface.empty() || if_nametoindex(interface.c_str()) == 0)) {
    return absl::NotFoundError(absl::StrFormat(
        "port %s: %s needs a network interface, and there is no iface=%s here (there are %s); make it with `ip link "
        "add`, or start halfpage in its namespace with `ip netns exec`",
        port, device.driver, interface, Interfaces()));
  }
  if (device.driver == "net_tap" && access("/dev/net/tun", R_OK | W_OK) != 0) {
    return absl::FailedPreconditionError(
        absl::StrFormat("port %s: net_tap needs /dev/net/tun to read and write (%s); load it with `modprobe tun`, hand "
                        "it into the container with --device /dev/net/tun, and run as root",
                        port, std::strerror(errno)));
  }
  if ((on_interface || device.driver == "net_tap") && geteuid() != 0) {
    return absl::PermissionDeniedError(absl::StrFormat(
        "port %s: %s needs root: run with sudo; net_pcap, net_null and net_memif do without", port, device.driver));
  }
  return absl::OkStatus();
}

absl::Status ProbeError(const std::string& port, const std::string& text, const DeviceString& device, int error) {
  std::string mend;
  if (device.pci) {
    mend =
        "bind the device to vfio-pci with `dpdk-devbind.py -b vfio-pci ADDRESS`, and see with `dpdk-devbind.py -s` "
        "what there is";
  } else if (device.driver.empty()) {
    mend = "give a port that is there already, a PCI address, or a virtual device as in net_af_packet0,iface=eth0";
  } else {
    mend = "check the driver's name and arguments against its page in DPDK's NIC guide";
  }
  return absl::ErrnoToStatus(error == 0 ? ENODEV : error,
                             absl::StrFormat("port %s: EAL cannot make the device `%s` (%s; its own words stand "
                                             "above); %s",
                                             port, text, rte_strerror(error), mend));
}

absl::Status MtuError(const std::string& port, const DeviceString& device, uint32_t mtu, uint32_t most, int error) {
  const std::string limit = mtu > most ? absl::StrFormat("it takes at most %u", most)
                                       : absl::StrFormat("its driver refuses it (%s)", rte_strerror(error));
  return absl::InvalidArgumentError(
      absl::StrFormat("port %s: mtu %u is not supported by %s: %s; write mtu: %u or less, or use net_af_packet on a "
                      "kernel interface for jumbo frames",
                      port, mtu, device.name, limit, mtu > most ? most : 1500));
}

absl::Status QueueError(const std::string& port, const DeviceString& device, uint16_t receive, uint16_t most_receive,
                        uint16_t send, uint16_t most_send) {
  const std::string how = device.driver == "net_af_packet" ? "qpairs=N in its device string"
                          : device.driver == "net_af_xdp"  ? "queue_count=N in its device string"
                          : device.driver == "net_pcap"    ? "one rx_ and tx_ argument for each queue"
                                                           : "whatever its driver takes for it";
  if (receive > most_receive) {
    return absl::InvalidArgumentError(
        absl::StrFormat("port %s: queues: %u, and %s has %u to receive from; write queues: %u, or give it more with %s",
                        port, receive, device.name, most_receive, most_receive, how));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "port %s: %u transmit queues, one for each worker that sends through it at least (tx_queues, --txq), and %s has "
      "%u; give it more with %s, ask for fewer, or let fewer workers send there",
      port, send, device.name, most_send, how));
}

absl::Status ReceiveRoomError(const std::string& port, const DeviceString& device, const rte_mempool* pool, int error) {
  std::string mend = "its own words stand above";
  if (device.driver == "net_af_packet") {
    mend = absl::StrFormat("its ring's frames must fit a buffer: data_room of at least framesz + 128 = %d",
                           device.Number("framesz", kAfPacketFrame) + RTE_PKTMBUF_HEADROOM);
  } else if (device.driver == "net_af_xdp") {
    mend = absl::StrFormat(
        "it needs a pool of a stock handler with %u buffers for each queue and more for frames on "
        "their way, page-sized or smaller, in one piece of memory",
        kAfXdpKept);
  }
  return absl::ErrnoToStatus(
      error, absl::StrFormat("port %s: %s cannot receive into pool `%s`; %s", port, device.name, pool->name, mend));
}

absl::Status SetUpError(const std::string& port, const DeviceString& device, absl::string_view what, int error) {
  return absl::ErrnoToStatus(
      error, absl::StrFormat("port %s: %s %s; its driver's own words stand above", port, device.name, what));
}

}  // namespace halfpage
