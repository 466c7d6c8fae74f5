// "Clear" without touching a counter: what was read before is subtracted from what is read now.
#pragma once

#include "app/snapshot.h"

namespace halfpage {

// `now` with every counter less what it was in `before`; gauges, texts and times stay those of `now`. Things that
// `before` has not got count from 0. Whoever reads keeps its own `before`: no reader's clearing is seen by another.
Snapshot Since(Snapshot now, Snapshot before);

}  // namespace halfpage
