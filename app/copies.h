// Private copies, from the configuration to what a queue's converter and the admission rules want to know.
#pragma once

#include <string>
#include <vector>

#include "app/config.h"
#include "app/config_faults.h"
#include "app/device.h"
#include "xdp_emul/attach.h"
#include "xdp_emul/converter_config.h"

namespace halfpage {

// Fills in what `copy:` leaves to us: the policy of the pair's mode, the first pool for `stock` and `classes`, and for
// every other policy a pool of the device's own, which is added to `config.pools` as `copy_DEVICE`.
void FillInCopies(Config& config);

// The pool that a device's copies are made into, where its policy wants one of its own.
PktmbufPoolConfig CopyPool(const std::string& name, const CopyConfig& copy);
bool CopiesIntoOwnPool(CopyConfig::Policy policy);

// Values of `copy:` against each other and against the pools.
void CheckCopies(const Config& config, FaultList& faults);

// Programs against the MTUs of those who send to them, with CheckAttach(); peers that take no XDP frames.
void CheckAttachments(const Config& config, FaultList& faults);

// What CheckAttach() wants to know of a device and its program; nothing where it has none, or where the pools that its
// frames come in are not known. `devices` are ListDevices(config).
struct Attachment {
  AttachRequest request;
  DeviceIndex mtu_device = kNoDevice;  // who has the MTU that decides
};
std::vector<Attachment> AttachmentsOf(const Config& config, const std::vector<Device>& devices);

// What the converter of a device with this program is told, but for its pools.
ConverterConfig ConverterOf(const Device& device, bool writes, bool frags);
// Whether it can ever have something to do.
bool NeedsConverter(const ConverterConfig& config);

}  // namespace halfpage
