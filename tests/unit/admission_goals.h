/* SPDX-License-Identifier: Apache-2.0
 * The goals of admission as its settings have them by default, for tests that need no settings. */
#ifndef TG_TESTS_ADMISSION_GOALS_H
#define TG_TESTS_ADMISSION_GOALS_H

#include "services/admission/core_pace.h"

static const struct admission_goals goals = {.edge_late_us = 200000,
                                             .gate_p99_us = 250000,
                                             .ledger_p99_us = 150000,
                                             .error_permille = 10,
                                             .in_flight = 1024,
                                             .database_cpu_milli = 85000,
                                             .payment_errors_milli = 5000,
                                             .ramp_ms = 60000};

#endif
